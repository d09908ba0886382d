import { BlockList, isIP } from "node:net";

/** Networks whose proxies are believed about the client that they speak for. */
export class TrustedNetworks {
  private readonly list = new BlockList();
  private readonly empty: boolean;

  /** `networks`: IP literals or CIDR text such as `10.0.0.0/8`. Throws a RangeError that names a bad entry. */
  constructor(networks: readonly string[]) {
    this.empty = networks.length === 0;
    for (const network of networks) {
      const [address = "", bits] = network.split("/");
      const family = isIP(address);
      const limit = family === 4 ? 32 : 128;
      const prefix = bits === undefined ? limit : /^\d{1,3}$/.test(bits) ? Number(bits) : -1;
      if (family === 0 || prefix < 0 || prefix > limit) throw new RangeError(`not a network: ${network}`);
      this.list.addSubnet(address, prefix, family === 4 ? "ipv4" : "ipv6");
    }
  }

  covers(address: string): boolean {
    if (this.empty) return false;
    const family = isIP(address);
    return family !== 0 && this.list.check(address, family === 4 ? "ipv4" : "ipv6");
  }

  /**
   * The client's address: `peer`, or where that is trusted the last address in X-Forwarded-For that is not
   * (as NGINX's `real_ip_recursive on`).
   */
  clientOf(peer: string, forwardedFor: string | undefined): string {
    if (forwardedFor === undefined || !this.covers(peer)) return peer;
    let client = peer;
    const hops = forwardedFor.split(",");
    for (let i = hops.length - 1; i >= 0; i--) {
      const hop = plainAddress(hops[i].trim());
      if (isIP(hop) === 0) return client;
      client = hop;
      if (!this.covers(hop)) return hop;
    }
    return client;
  }
}

/** IPv4 addresses that a dual-stack socket shows as IPv6 (`::ffff:10.0.0.1`) in their own form. */
export function plainAddress(address: string): string {
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice(7) : address;
}
