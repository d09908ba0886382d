/** Start options as they stand in nginx.conf. Whatever could be read as something else is refused by a RangeError. */
import { isIP } from "node:net";

export interface NginxListener {
  /** Address to bind; all of IPv4 and IPv6 by default. */
  address?: string;
  port: number;
}

/** Text that goes into the configuration between quotes. Throws for what could end them. */
export function quoted(text: string): string {
  if (/["\\$\r\n\0;{}]/.test(text)) throw new RangeError(`can't stand in nginx.conf: ${JSON.stringify(text)}`);
  return `"${text}"`;
}

export function listen({ address, port }: NginxListener, flags: string): string[] {
  if (!Number.isInteger(port) || port < 1 || port > 65535) throw new RangeError(`not a port: ${port}`);
  // A socket of both kinds would show clients of IPv4 as ::ffff:10.0.0.1, to upstreams, conditions and hash keys alike.
  if (address === undefined || address === "::") {
    return [`listen 0.0.0.0:${port} ${flags};`, `listen [::]:${port} ipv6only=on ${flags};`];
  }
  const family = isIP(address);
  if (family === 0 || address.includes("%")) throw new RangeError(`not an address: ${JSON.stringify(address)}`);
  return [`listen ${family === 6 ? `[${address}]` : address}:${port} ${flags};`];
}

/**
 * One `address:port` by which OpenNJet's APIs find the server that `listen` makes, all its sockets included. They read `::` only in
 * brackets, as NGINX does.
 */
export function addressPort({ address, port }: NginxListener): string {
  if (address === undefined || address === "::") return `0.0.0.0:${port}`;
  return `${isIP(address) === 6 ? `[${address}]` : address}:${port}`;
}

export function network(text: string): string {
  const [address = "", bits, rest] = text.split("/");
  const most = isIP(address) === 4 ? 32 : isIP(address) === 6 ? 128 : -1;
  if (
    most < 0 ||
    address.includes("%") ||
    rest !== undefined ||
    (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= most))
  ) {
    throw new RangeError(`not a network: ${JSON.stringify(text)}`);
  }
  return text;
}

/** A list of paths with `;` between them. */
export function quotedPaths(paths: string): string {
  return `"${paths
    .split(";")
    .map((path) => quoted(path).slice(1, -1))
    .join(";")}"`;
}

export function unixPath(path: string): string {
  const text = quoted(path).slice(1, -1);
  if (/\s/.test(text)) throw new RangeError(`can't be the path of a socket in nginx.conf: ${JSON.stringify(path)}`);
  return text;
}
