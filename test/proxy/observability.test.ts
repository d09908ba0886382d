import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { BufferedLineSink } from "../../controller/observability/line-sink.js";
import { createLogger, type LogLevel } from "../../controller/observability/logger.js";

/** A stream whose writes end only when the test lets them. */
function slowStream() {
  const written: string[] = [];
  const pending: (() => void)[] = [];
  const stream = new Writable({
    highWaterMark: 10,
    decodeStrings: false,
    write(chunk: string, _encoding, done) {
      written.push(chunk);
      pending.push(done);
    },
  });
  const release = (): void => {
    for (const done of pending.splice(0)) done();
  };
  return { stream, written, release };
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

describe("the line sink", () => {
  it("writes the lines of one turn in one piece", async () => {
    const { stream, written } = slowStream();
    const sink = new BufferedLineSink(stream);
    sink.write("a");
    sink.write("b");
    expect(written).toEqual([]);
    await turn();
    expect(written).toEqual(["a\nb\n"]);
  });

  it("counts what it drops while its reader is stuck, and goes on after it", async () => {
    const { stream, written, release } = slowStream();
    const sink = new BufferedLineSink(stream, 30);
    sink.write("x".repeat(20));
    await turn();
    for (let i = 0; i < 10; i++) sink.write(`line-${i}`);
    await turn();
    expect(written).toHaveLength(1);
    expect(sink.dropped).toBe(6);
    release();
    await turn();
    expect(written[1]).toBe("line-0\nline-1\nline-2\nline-3\n");
    release();
    await turn();
    sink.write("after");
    await turn();
    expect(written[2]).toBe("after\n");
  });

  it("counts every line after its stream has failed", async () => {
    const sink = new BufferedLineSink(
      new Writable({
        write(_chunk, _encoding, done) {
          done(new Error("gone"));
        },
      }),
    );
    sink.write("a");
    await turn();
    await turn();
    sink.write("b");
    expect(sink.dropped).toBe(1);
    await sink.close();
  });

  it("hands everything over before it closes", async () => {
    const { stream, written, release } = slowStream();
    const sink = new BufferedLineSink(stream);
    sink.write("last");
    const closed = sink.close();
    await turn();
    release();
    await turn();
    release();
    await closed;
    expect(written.join("")).toBe("last\n");
  });

  it("gives up on a stuck reader when it closes", async () => {
    const { stream } = slowStream();
    const sink = new BufferedLineSink(stream);
    sink.write("last");
    await sink.close(20);
  });
});

describe("the logger", () => {
  function logging(level?: LogLevel) {
    const lines: Record<string, unknown>[] = [];
    const logger = createLogger({ sink: { write: (line) => lines.push(JSON.parse(line)) }, level, now: () => 0 });
    return { logger, lines };
  }

  it("writes JSON lines with time, level and message", () => {
    const { logger, lines } = logging();
    logger.info("started", { port: 80 });
    expect(lines).toEqual([{ time: "1970-01-01T00:00:00.000Z", level: "info", message: "started", port: 80 }]);
  });

  it("leaves lower levels out", () => {
    const { logger, lines } = logging("warn");
    logger.debug("a");
    logger.info("b");
    logger.warn("c");
    logger.error("d");
    expect(lines.map((line) => line.message)).toEqual(["c", "d"]);
  });

  it("does not let a field take the place of time, level or message", () => {
    const { logger, lines } = logging();
    logger.warn("real", { time: "x", level: "info", message: "forged" });
    expect(lines[0]).toMatchObject({ level: "warn", message: "real", time: "1970-01-01T00:00:00.000Z" });
  });

  it("hides secrets by name and by their look, however deep", () => {
    const { logger, lines } = logging();
    const pem = "-----BEGIN EC PRIVATE KEY-----\nabc";
    logger.error("x", {
      certificate: { key: "s3cret", note: pem },
      headers: [{ Authorization: "s3cret", cookie: "s3cret" }],
    });
    expect(JSON.stringify(lines)).not.toMatch(/s3cret|BEGIN/);
  });

  it("shows errors with code and message", () => {
    const { logger, lines } = logging();
    logger.error("x", { error: Object.assign(new Error("no"), { code: "ENO" }) });
    expect(lines[0].error).toEqual({ name: "Error", code: "ENO", message: "no" });
  });

  it("survives values that JSON can't hold", () => {
    const { logger, lines } = logging();
    const loop: Record<string, unknown> = {};
    loop.self = loop;
    logger.info("loop", { loop });
    logger.info("big", { big: 10n });
    expect(lines).toMatchObject([{ message: "loop" }, { message: "big", big: "10" }]);
  });
});
