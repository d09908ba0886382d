import { isIP, isIPv6 } from "node:net";
import { beforeAll, describe, expect, it } from "vitest";
import { HashRing } from "../../core-wasm/binding/hash-ring.js";
import { freshCore, randomNumbers, type TestCore } from "./core-instance.js";

let core: TestCore;
beforeAll(async () => {
  core = await freshCore();
});

/** The core's form of an address, undefined if it refuses it. */
function canonical(address: string): string | undefined {
  let ring: HashRing;
  try {
    ring = HashRing.build({ exports: core }, [{ address, port: 1 }]);
  } catch {
    return undefined;
  }
  const text = ring.peer(0).address;
  ring.free();
  return text;
}

describe("addresses", () => {
  it.each([
    ["0.0.0.0", "0.0.0.0"],
    ["255.255.255.255", "255.255.255.255"],
    ["::", "::"],
    ["::1", "::1"],
    ["1::", "1::"],
    ["0:0:0:0:0:0:0:1", "::1"],
    ["2001:DB8::A", "2001:db8::a"],
    ["1:0:0:2:0:0:0:3", "1:0:0:2::3"],
    ["1:0:0:2:3:0:0:4", "1::2:3:0:0:4"],
    ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"],
    ["::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"],
    ["::ffff:10.1.2.3", "::ffff:a01:203"],
    ["ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ])("writes %s as %s", (text, form) => {
    expect(canonical(text)).toBe(form);
  });

  it.each([
    "",
    "1.2.3",
    "1.2.3.4.5",
    "1.2.3.256",
    "01.2.3.4",
    "1.2.3.4 ",
    "1..2.3",
    ":",
    ":::",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "1::2::3",
    "1:2:3:4:5:6:7:8::",
    "12345::",
    "::g",
    "1:",
    ":1",
    "::1.2.3",
    "1:2:3:4:5:6:7:1.2.3.4",
    "[::1]",
    "fe80::1%eth0",
    "localhost",
    "\u0131.2.3.4",
    "１.2.3.4",
  ])("refuses %j", (text) => {
    expect(canonical(text)).toBeUndefined();
  });

  it("takes what Node takes for an address, zones aside, and keeps its meaning", () => {
    const random = randomNumbers(7);
    const parts = ["0", "1", "10", "255", "256", "00", "f", "ffff", "12345", "", "::", "g"];
    let taken = 0;
    for (let i = 0; i < 20_000; i++) {
      const separator = random() % 3 ? ":" : ".";
      const text = Array.from({ length: 1 + (random() % 8) }, () => parts[random() % parts.length]).join(separator);
      const form = canonical(text);
      expect(form !== undefined, text).toBe(isIP(text) !== 0);
      if (form === undefined) continue;
      taken++;
      expect(canonical(form)).toBe(form);
      expect(new URL(isIPv6(text) ? `http://[${text}]/` : `http://${text}/`).hostname).toBe(
        isIPv6(form) ? `[${form}]` : form,
      );
    }
    expect(taken).toBeGreaterThan(200);
  });
});
