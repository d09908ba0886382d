import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Document, parse, parseAllDocuments } from "yaml";

export const FOLDER = fileURLToPath(new URL("../../deploy/manifests/", import.meta.url));

/** The files that the kustomization names, in its order. */
export const listed = resourcesOf(FOLDER);
export const documents = listed.flatMap((file) => documentsOf(FOLDER, file));
export const objects = documents.map((document) => document.toJS());

function resourcesOf(folder: string): string[] {
  return parse(readFileSync(`${folder}kustomization.yaml`, "utf8")).resources;
}

/** The documents of a file, or of a folder with a kustomization of its own. */
function documentsOf(folder: string, resource: string): Document.Parsed[] {
  const path = folder + resource;
  if (!resource.endsWith(".yaml")) return resourcesOf(`${path}/`).flatMap((file) => documentsOf(`${path}/`, file));
  return parseAllDocuments(readFileSync(path, "utf8"));
}
