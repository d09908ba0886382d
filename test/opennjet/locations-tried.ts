/** Locations as OpenNJet tries them for a request, without OpenNJet: conditions in the order of creation, then patterns. */
import type { CarriedHost, CarriedLocation } from "../../controller/proxies/opennjet/locations/location-set.js";
import {
  locationsOf,
  readHost,
  type UpstreamLookup,
} from "../../controller/proxies/opennjet/locations/location-set.js";
import { questionMap } from "../../controller/proxies/opennjet/locations/questions.js";
import type { HostRules } from "../../core-wasm/binding/source.js";
import { readRequest } from "../core/reference/request.js";
import { argumentOf, cookieOf } from "../core/reference/values.js";
import {
  type ConditionTree,
  conditionHolds,
  parseCondition,
  type VariableReader,
} from "../real/opennjet-double/conditions.js";
import { QUESTIONS } from "./carrier-over.js";

/** A request; texts are bytes, a character for each. */
export interface TriedRequest {
  host: string;
  target: string;
  method?: string;
  scheme?: "http" | "https";
  clientAddress?: string;
  /** By lower-case name. */
  headers?: Record<string, string>;
  /** 32 hexadecimal digits. */
  requestId?: string;
}

const [, [pattern]] = questionMap(QUESTIONS).values;
const ASKED = new RegExp(pattern.slice("~".length));

const trees = new Map<string, ConditionTree>();

function treeOf(name: string): ConditionTree {
  let tree = trees.get(name);
  if (tree === undefined) {
    if (trees.size > 20_000) trees.clear();
    tree = parseCondition(name);
    trees.set(name, tree);
  }
  return tree;
}

/** The variables of NGINX for a request; undefined where NGINX refuses the request. */
export function variablesOf(request: TriedRequest): VariableReader | undefined {
  const { headers = {} } = request;
  const read = readRequest(request.host, request.target);
  if (read === undefined) return undefined;
  const values: Record<string, string> = {
    host: read.host,
    uri: read.path,
    args: read.query ?? "",
    query_string: read.query ?? "",
    request_uri: read.target,
    request_method: request.method ?? "GET",
    scheme: request.scheme ?? "http",
    https: request.scheme === "https" ? "on" : "",
    remote_addr: request.clientAddress ?? "192.0.2.7",
    remote_port: "40123",
    server_protocol: "HTTP/1.1",
    http2: "",
    request: `${request.method ?? "GET"} ${read.target} HTTP/1.1`,
    request_id: request.requestId ?? "0".repeat(32),
    njet_kic_asked: ASKED.exec(read.path)?.[1] ?? "none",
  };
  return (name) => {
    if (name.startsWith("http_")) return headers[name.slice(5).replaceAll("_", "-")] ?? "";
    if (name.startsWith("cookie_")) return cookieOf(headers.cookie ?? "", name.slice(7));
    if (name.startsWith("arg_")) return argumentOf(read.query ?? "", name.slice(4));
    if (!Object.hasOwn(values, name)) throw new Error(`no variable ${name}`);
    return values[name];
  };
}

/** All locations whose condition holds. */
export function holding(locations: readonly CarriedLocation[], read: VariableReader): CarriedLocation[] {
  return locations.filter(({ rule, name }) => rule === "" && conditionHolds(treeOf(name), read));
}

/** The body of the location that takes a request: `400` and `404` where there is none. */
export function tried(locations: readonly CarriedLocation[], request: TriedRequest): string {
  const read = variablesOf(request);
  if (read === undefined) return "400";
  const conditional = holding(locations, read);
  if (conditional.length > 0) return conditional[0].body;
  // A static location comes before all patterns.
  if (read("uri").startsWith(`/${QUESTIONS}/`)) return "404";
  const last = locations.find(({ rule, name }) => rule === "~" && new RegExp(name).test(read("uri")));
  return last?.body ?? "404";
}

/** All locations of these rules, and which host each is of. */
export function locationsOfRules(
  table: readonly HostRules[],
  upstreams: UpstreamLookup = () => undefined,
  edition = 0,
): CarriedLocation[] {
  const hosts: CarriedHost[] = table.map(readHost);
  const patterns = table.map(({ pattern }) => pattern);
  const surroundings = { patterns, upstreams, balancer: "own", folder: QUESTIONS, edition } as const;
  return hosts.flatMap((host) => locationsOf(host, surroundings, (route) => route.replace(/\W/g, "_")));
}
