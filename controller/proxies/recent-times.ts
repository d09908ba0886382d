/** How many of the last durations count, and for how long (milliseconds), as in the VTS module. */
const KEPT = 64;
const PERIOD = 60_000;

/**
 * The last durations, for their average. Times and durations in milliseconds. Lists that grow: most of many thousand hosts are
 * asked rarely, and arrays of the full length would cost each of them a kilobyte.
 */
export class RecentTimes {
  private readonly durations: number[] = [];
  private readonly times: number[] = [];
  private next = 0;

  add(duration: number, now: number): void {
    this.durations[this.next] = duration;
    this.times[this.next] = now;
    this.next = (this.next + 1) % KEPT;
  }

  /** Arithmetic mean of what came within the last minute; 0 if nothing did. */
  average(now: number): number {
    let sum = 0;
    let count = 0;
    for (let i = 0; i < this.times.length; i++) {
      if (now - this.times[i] > PERIOD) continue;
      sum += this.durations[i];
      count++;
    }
    return count === 0 ? 0 : sum / count;
  }
}
