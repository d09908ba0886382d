import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse, parseAllDocuments } from "yaml";

export const FOLDER = fileURLToPath(new URL("../../deploy/manifests/", import.meta.url));

/** The files that the kustomization names, in its order. */
export const listed: string[] = parse(readFileSync(`${FOLDER}kustomization.yaml`, "utf8")).resources;
export const documents = listed.flatMap((file) => parseAllDocuments(readFileSync(FOLDER + file, "utf8")));
export const objects = documents.map((document) => document.toJS());
