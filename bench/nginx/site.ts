/** The workload of the table `nginx`: hosts with two paths each, and the services behind them. */
import type { Upstream } from "../../controller/model/types.js";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import type { Action, HostRules, Route } from "../../core-wasm/binding/source.js";
import { Random } from "../random.js";

/** Services, of three peers each. */
export const SERVICES = 10;
const PEERS = 3;
/** Requests that are sent in turn. */
const REQUESTS = 4_000;
/** Routes or conditions of the host where a proxy has to search. */
export const SEARCHED = 300;
export const SEARCHED_HOST = "search.example.com";
export const CONDITION_HEADER = "X-Tenant";

export interface Request {
  host: string;
  path: string;
  /** Value of the header that conditions look at. */
  tenant?: string;
  /** Whose answer is the right one. */
  service: number;
}

export const hostOf = (index: number): string => `site-${String(index).padStart(5, "0")}.example.com`;
/** Services of the paths `/` and `/cart` of a host. */
export const servicesOf = (index: number): [number, number] => [index % SERVICES, (index + 1) % SERVICES];
/** What the addresses of a service begin with. */
export const addressPrefix = (service: number): string => `127.0.${100 + service}.`;
export const addressesOf = (service: number): string[] =>
  Array.from({ length: PEERS }, (_, i) => `${addressPrefix(service)}${i + 1}`);
export const allAddresses = (): string[] => Array.from({ length: SERVICES }, (_, i) => addressesOf(i)).flat();
export const regexOf = (index: number): string => `/api/v[0-9]+/items-${index}/[a-z]+$`;
export const tenantOf = (index: number): string => `tenant-${index}`;
export const serviceOf = (index: number): number => index % SERVICES;

const keyOf = (service: number) => `VirtualServer/default/bench/service-${service}`;
const RESOURCE = "VirtualServer/default/bench";

export function upstreamStep(service: number, port: number, addresses = addressesOf(service)): PlanStep {
  const upstream: Upstream = {
    peers: {
      key: keyOf(service),
      display: `default/service-${service}:80`,
      method: { kind: "round-robin" },
      peers: addresses.map((address) => ({ address, port, weight: 1 })),
    },
    transport: { tls: false, protocol: "http" },
  };
  return { step: "set-upstream", upstream };
}

const proxyTo = (service: number): Action => ({ kind: "proxy", upstream: keyOf(service) });

function hostStep(host: string, routes: Pick<Route, "path" | "label" | "matches" | "outcome">[]): PlanStep {
  const rules: HostRules = {
    pattern: { kind: "exact", host },
    guards: [],
    routes: routes.map((route) => ({ resource: RESOURCE, ...route })),
  };
  return { step: "set-host", rules };
}

/** The host `index`, with the given services for `/` and `/cart`. */
export function siteStep(index: number, [root, cart] = servicesOf(index)): PlanStep {
  const prefix = (path: string, service: number) => ({
    path: { kind: "prefix", path, stopsRegex: false } as const,
    ...{ label: path, matches: [], outcome: proxyTo(service) },
  });
  return hostStep(hostOf(index), [prefix("/", root), prefix("/cart", cart)]);
}

export function regexStep(): PlanStep {
  const routes = Array.from({ length: SEARCHED }, (_, i) => ({
    path: { kind: "regex", pattern: regexOf(i), ignoreCase: false, anchored: true } as const,
    ...{ label: `~ ^${regexOf(i)}`, matches: [], outcome: proxyTo(serviceOf(i)) },
  }));
  return hostStep(SEARCHED_HOST, routes);
}

export function conditionStep(): PlanStep {
  const source = { kind: "header", name: CONDITION_HEADER } as const;
  const matches = Array.from({ length: SEARCHED }, (_, i) => ({
    conditions: [{ source, test: { kind: "equals", value: tenantOf(i) } as const, negated: false }],
    outcome: proxyTo(serviceOf(i)),
  }));
  const path = { kind: "prefix", path: "/", stopsRegex: false } as const;
  return hostStep(SEARCHED_HOST, [{ path, label: "/", matches, outcome: proxyTo(0) }]);
}

/** All services, and then what is given. */
export function stepsWith(port: number, ...steps: PlanStep[]): PlanStep[] {
  return [...Array.from({ length: SERVICES }, (_, service) => upstreamStep(service, port)), ...steps];
}

/** Requests to hosts in random order, the same in every run. */
export function siteRequests(hosts: number): Request[] {
  const random = new Random(6);
  return Array.from({ length: REQUESTS }, () => {
    const index = random.next(hosts);
    return { host: hostOf(index), path: "/cart/items?sort=price&page=2", service: servicesOf(index)[1] };
  });
}

export function regexRequests(): Request[] {
  const random = new Random(7);
  return Array.from({ length: REQUESTS }, () => {
    const index = random.next(SEARCHED);
    return { host: SEARCHED_HOST, path: `/api/v2/items-${index}/list`, service: serviceOf(index) };
  });
}

export function conditionRequests(): Request[] {
  const random = new Random(8);
  return Array.from({ length: REQUESTS }, () => {
    const index = random.next(SEARCHED);
    return { host: SEARCHED_HOST, path: "/cart/items", tenant: tenantOf(index), service: serviceOf(index) };
  });
}
