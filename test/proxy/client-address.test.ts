import { describe, expect, it } from "vitest";
import { plainAddress, TrustedNetworks } from "../../controller/proxies/embedded/client-address.js";

describe("trusted networks", () => {
  it("cover addresses and CIDR blocks of both families", () => {
    const trusted = new TrustedNetworks(["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"]);
    for (const inside of ["10.1.2.3", "192.0.2.7", "2001:db8:1::1"]) expect(trusted.covers(inside)).toBe(true);
    for (const outside of ["11.0.0.1", "192.0.2.8", "2001:db9::1", "", "nonsense"])
      expect(trusted.covers(outside)).toBe(false);
  });

  it.each(["", "10.0.0.0/33", "10.0.0.0/x", "10.0.0.0/", "10.0.0.0/-1", "2001:db8::/129", "example.com", "10.0.0/8"])(
    "refuse %j and name it",
    (entry) => {
      expect(() => new TrustedNetworks([entry])).toThrow(new RangeError(`not a network: ${entry}`));
    },
  );

  it("believe nobody unless told to", () => {
    expect(new TrustedNetworks([]).clientOf("10.0.0.1", "1.2.3.4")).toBe("10.0.0.1");
  });

  it.each([
    ["10.0.0.1", "1.2.3.4", "1.2.3.4"],
    ["10.0.0.1", "6.6.6.6, 1.2.3.4", "1.2.3.4"],
    ["10.0.0.1", "6.6.6.6, 1.2.3.4,10.0.0.2", "1.2.3.4"],
    ["10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
    ["10.0.0.1", "1.2.3.4, nonsense", "10.0.0.1"],
    ["10.0.0.1", "1.2.3.4, nonsense, 10.0.0.2", "10.0.0.2"],
    ["10.0.0.1", "", "10.0.0.1"],
    ["10.0.0.1", undefined, "10.0.0.1"],
    ["9.9.9.9", "1.2.3.4", "9.9.9.9"],
  ])("make of a connection from %s with %j the client %s", (peer, forwardedFor, client) => {
    expect(new TrustedNetworks(["10.0.0.0/8"]).clientOf(peer, forwardedFor)).toBe(client);
  });

  it("know IPv4 addresses on dual-stack sockets", () => {
    expect(plainAddress("::ffff:10.0.0.1")).toBe("10.0.0.1");
    expect(plainAddress("::1")).toBe("::1");
  });
});
