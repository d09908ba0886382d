/** Hosts, routes and requests of the `route` table. */
import { Random } from "../random.js";

export interface Size {
  name: string;
  hosts: number;
  pathsPerHost: number;
}

export const SIZES: readonly Size[] = [
  { name: "1k", hosts: 100, pathsPerHost: 10 },
  { name: "10k", hosts: 1000, pathsPerHost: 10 },
  { name: "100k", hosts: 10_000, pathsPerHost: 10 },
  { name: "wide", hosts: 10, pathsPerHost: 1000 },
];

/** A route: whole segments of a path under a host (Ingress `Prefix`). Its number is its place in `Workload.routes`. */
export interface BenchRoute {
  host: string;
  path: string;
}

/** A request and the number of the route that is to be found, -1 for none. */
export interface BenchRequest {
  host: string;
  target: string;
  expected: number;
}

export interface Workload {
  size: Size;
  hosts: string[];
  /** Those of one host stand together. */
  routes: BenchRoute[];
  requests: BenchRequest[];
}

const ZONES = ["shop", "pay", "media", "data", "admin"];
const WORDS = ["orders", "users", "carts", "items", "prices", "search", "events", "images", "login", "status"];

/** Every route has one, two or three segments, and no route is a prefix of another one of its host. */
function pathOf(index: number): string {
  const word = WORDS[index % WORDS.length];
  const number = Math.floor(index / WORDS.length);
  const depth = index % 3;
  if (depth === 0) return `/${word}-${number}`;
  return depth === 1 ? `/api-${number}/${word}` : `/api-${number}/v2/${word}`;
}

export function makeWorkload(size: Size, requestCount: number): Workload {
  const hosts = Array.from(
    { length: size.hosts },
    (_, i) => `tenant-${String(i).padStart(5, "0")}.${ZONES[i % ZONES.length]}.example.com`,
  );
  const routes = hosts.flatMap((host) =>
    Array.from({ length: size.pathsPerHost }, (_, i) => ({ host, path: pathOf(i) })),
  );
  return { size, hosts, routes, requests: makeRequests(hosts, routes, requestCount) };
}

/**
 * 85 of 100 requests meet a route: one half asks for its very path, the other for something one or two segments below
 * it. Of the others one half has a host that nobody serves, the other a path that its host does not have.
 */
function makeRequests(hosts: readonly string[], routes: readonly BenchRoute[], count: number): BenchRequest[] {
  const random = new Random(20_261_202);
  return Array.from({ length: count }, () => {
    const kind = random.next(200);
    if (kind < 170) {
      const expected = random.next(routes.length);
      const { host, path } = routes[expected];
      const below = kind < 85 ? "" : random.next(2) ? `/${100 + random.next(900)}` : `/${random.next(10)}/edit`;
      return { host, target: path + below, expected };
    }
    if (kind < 185)
      return {
        host: `absent-${random.next(100_000)}.shop.example.com`,
        target: random.pick(routes).path,
        expected: -1,
      };
    return { host: random.pick(hosts), target: `/absent-${random.next(100)}/v2/orders`, expected: -1 };
  });
}

/** Mean number of bytes of host and target together. */
export function meanBytes(requests: readonly BenchRequest[]): number {
  return requests.reduce((sum, { host, target }) => sum + host.length + target.length, 0) / requests.length;
}
