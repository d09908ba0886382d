import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse, parseAllDocuments } from "yaml";

export const FOLDER = fileURLToPath(new URL("../../deploy/validating-webhook/", import.meta.url));
const read = (file: string) => readFileSync(FOLDER + file, "utf8");

/** One operation of a JSON patch (RFC 6902). */
export interface PatchOperation {
  op: string;
  path: string;
  // What stands in a manifest.
  value: unknown;
}

export const kustomization = parse(read("kustomization.yaml"));
export const service = parse(read("service.yaml"));
export const configuration = parse(read("configuration.yaml"));
export const deploymentPatch: PatchOperation[] = parse(read("deployment-patch.yaml"));
export const certManager = parseAllDocuments(read("cert-manager.yaml")).map((document) => document.toJS());
