import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";
import type { RequestSpec } from "../../controller/cli/request-line.js";
import { type ObjectChange, RoutingModel } from "../../controller/model/routing-model.js";
import { type Kind, recogniseKind } from "../../controller/resources/object-ref.js";
import type { RouteTable } from "../../core-wasm/binding/route-table.js";
import { makeRoutingTable, patternChecker } from "../support/core.js";

/** A Kubernetes object as it stands in a file. */
export interface SourceObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; [field: string]: unknown };
  [field: string]: unknown;
}

export interface Vector {
  name: string;
  mode: string;
  objects: SourceObject[];
  rejected?: { kind: Kind; namespace: string; name: string }[];
  cases: { request: RequestSpec; expect: { upstream?: string; status?: number } }[];
}

const VECTORS = fileURLToPath(new URL("../vectors/", import.meta.url));

/** All vectors of the routing rules in strict mode. */
export function strictVectors(): Vector[] {
  return readdirSync(VECTORS)
    .filter((file) => file.endsWith(".yaml"))
    .map((file) => parseYaml<Vector>(readFileSync(`${VECTORS}${file}`, "utf8"))[0])
    .filter((vector) => vector.mode === "strict");
}

/** The documents of a YAML text. */
export function parseYaml<T = SourceObject>(text: string): T[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as T)
    .filter((object) => object !== null);
}

export function changeOf(object: SourceObject): ObjectChange {
  const kind = recogniseKind(object.apiVersion, object.kind)!;
  const namespace = kind === "IngressClass" ? "" : (object.metadata.namespace ?? "default");
  return { kind, namespace, name: object.metadata.name, object };
}

export function removalOf(object: SourceObject): ObjectChange {
  return { ...changeOf(object), object: undefined };
}

/** A model of a folder with these objects. */
export function modelOf(objects: SourceObject[], source: "folder" | "cluster" = "folder"): RoutingModel {
  const model = new RoutingModel({ checker: patternChecker(), source });
  model.update(objects.map(changeOf));
  return model;
}

/** A routing table with what a folder of these objects gives. */
export function tableOfObjects(objects: SourceObject[]): RouteTable {
  const table = makeRoutingTable();
  const { hosts, upstreams } = modelOf(objects).snapshot();
  for (const upstream of upstreams.values()) table.setPeers(upstream.peers);
  for (const rules of hosts.values()) table.setHost(rules);
  return table;
}

/** A model of the documents of a YAML text. */
export function modelOfYaml(text: string): RoutingModel {
  return modelOf(parseYaml(text));
}

/** State, reason and `code@path` of the problems of an object. */
export function stateText(model: RoutingModel, kind: Kind, name: string, namespace = "default"): string {
  const found = model.problems({ kind, namespace, name });
  if (found === undefined) return "absent";
  return [found.state, found.reason, ...found.problems.map(({ code, path }) => `${code}@${path}`)].join(" ");
}
