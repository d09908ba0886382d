import { readFileSync } from "node:fs";
import type { Probe } from "./attempt.js";
import { probeGrpc } from "./probe-grpc.js";
import { HttpProbes } from "./probe-http.js";
import { probeTcp } from "./probe-tcp.js";

/** Descriptors that are left for everything else. */
const RESERVED = 64;
/** More probes under way, or connections kept, make no sense on any machine. */
const MOST = 16_384;
/** Where the system does not tell. */
const USUAL_LIMIT = 1024;

/** All kinds of probes behind one. */
export class Probes {
  readonly #http: HttpProbes;

  constructor(mostKept: number) {
    this.#http = new HttpProbes(mostKept);
  }

  readonly probe: Probe = (target, done) => {
    switch (target.check.type) {
      case "http":
        return this.#http.probe(target, done);
      case "grpc":
        return probeGrpc(target, done);
      case "tcp":
        return probeTcp(target, done);
    }
  };

  close(): void {
    this.#http.close();
  }
}

/** How many probes may be under way, and as many connections be kept, with the descriptors that this process may have. */
export function probeLimit(descriptors = descriptorLimit()): number {
  return Math.max(16, Math.min(MOST, (descriptors - RESERVED) >> 1));
}

/** The limit on open files; Node raises the soft one to the hard one when it starts. */
function descriptorLimit(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return Math.min(Number(soft ?? USUAL_LIMIT), 2 ** 30);
  } catch {
    return USUAL_LIMIT;
  }
}
