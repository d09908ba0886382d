import { describe, expect, it } from "vitest";
import { FrameError, FrameReader, frameOf } from "../../controller/health/frames.js";
import {
  type Command,
  decodeCommand,
  decodeReport,
  encodeCommand,
  encodeReport,
  MessageError,
  type Report,
} from "../../controller/health/messages.js";
import { Random } from "../support/random.js";
import { checkedUpstream } from "./health-support.js";

describe("frames", () => {
  it("come out as they went in, wherever the stream is cut", () => {
    const random = new Random(1);
    const messages = Array.from({ length: 300 }, (_, i) => ({ i, text: "ä".repeat(random.below(200)) }));
    const bytes = Buffer.concat(messages.map(frameOf));
    const reader = new FrameReader(10_000);
    const found: unknown[] = [];
    for (let at = 0; at < bytes.length; ) {
      const size = 1 + random.below(random.onceIn(3) ? 3 : 700);
      found.push(...reader.push(bytes.subarray(at, at + size)));
      at += size;
    }
    expect(found).toEqual(messages);
  });

  it("are refused by their length before the rest has come", () => {
    for (const length of [1001, 0x7fff_ffff, 0xffff_ffff]) {
      const head = Buffer.alloc(4);
      head.writeUInt32BE(length);
      expect(() => [...new FrameReader(1000).push(head)]).toThrow(FrameError);
    }
  });

  it("are refused where they hold no JSON", () => {
    expect(() => [...new FrameReader(100).push(Buffer.from("\0\0\0\x02{]"))]).toThrow(FrameError);
    expect(() => [...new FrameReader(100).push(Buffer.alloc(4))]).toThrow(FrameError);
  });
});

describe("messages", () => {
  const full = checkedUpstream("VirtualServer/default/shop/api", ["10.0.0.1:80", "::1:8080"], {
    port: 9,
    keepaliveTime: 1000,
    statusMatch: { negated: true, ranges: [{ from: 500, to: 599 }] },
    grpcStatus: 12,
    headers: [{ name: "Host", value: "x" }],
  });
  full.peers[0].state = "down";
  full.peers[1].state = "unchecked";
  const commands: Command[] = [
    { type: "hello", version: 1, token: "t" },
    { type: "set", upstream: full },
    { type: "peers", key: "k", peers: full.peers, gone: [{ address: "10.0.0.9", port: 1 }] },
    { type: "remove", key: "k" },
    { type: "synced" },
  ];
  const reports: Report[] = [
    { type: "welcome", version: 1, pid: 77 },
    { type: "refused", reason: "replaced" },
    {
      type: "states",
      at: 3,
      known: true,
      peers: [{ upstream: "k", address: "::1", port: 80, state: "slow-start", reason: "status 200" }],
    },
    { type: "alive", upMs: 7, ended: 1, failed: 2, underWay: 3, waiting: 4, cpuMs: 5, rss: 6 },
  ];

  it("are understood as they were meant", () => {
    const over = (value: unknown) => JSON.parse(JSON.stringify(value));
    for (const command of commands) expect(decodeCommand(over(encodeCommand(command)))).toEqual(command);
    for (const report of reports) expect(decodeReport(over(encodeReport(report)))).toEqual(report);
  });

  it("are refused as a whole where any part is not what it should be", () => {
    const random = new Random(2);
    const strange = [null, undefined, -1, 1.5, 2 ** 40, "", "x", [], {}, [[]], true, NaN, "__proto__"];
    const parts = (value: unknown): [Record<string, unknown>, string][] =>
      typeof value !== "object" || value === null
        ? []
        : Object.entries(value).flatMap(([name, inner]) => [
            [value as Record<string, unknown>, name] as [Record<string, unknown>, string],
            ...parts(inner),
          ]);
    let refused = 0;
    for (let i = 0; i < 20_000; i++) {
      const asCommand = random.onceIn(2);
      const encoded = asCommand ? encodeCommand(random.pick(commands)) : encodeReport(random.pick(reports));
      const message = structuredClone(encoded);
      const [holder, name] = random.pick(parts(message));
      holder[name] = random.pick(strange);
      try {
        // What is taken has its proper shape: it survives being sent on.
        if (asCommand) encodeCommand(decodeCommand(message));
        else encodeReport(decodeReport(message));
      } catch (error) {
        expect(error).toHaveProperty("name", "MessageError");
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(10_000);
  });

  it("are refused where they are no objects at all", () => {
    for (const message of [null, 1, "set", [], [1, 2], { type: 5 }, { type: "constructor" }, {}]) {
      expect(() => decodeCommand(message)).toThrow(MessageError);
      expect(() => decodeReport(message)).toThrow(MessageError);
    }
  });
});
