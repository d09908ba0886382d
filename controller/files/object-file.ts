import { createHash } from "node:crypto";
import { isClusterScoped, type ObjectRef, recogniseKind } from "../resources/object-ref.js";
import { type DocumentCache, parseJsonDocument, parseYamlDocuments, type SourceDocument } from "./documents.js";
import type { FileProblem } from "./file-problem.js";

/** An object as it stands in a file. */
export interface FileObject {
  ref: ObjectRef;
  object: unknown;
  /** Differs if the content differs. */
  signature: string;
}

/** What a file holds. */
export interface FileContent {
  objects: FileObject[];
  problems: FileProblem[];
  /** True if a part of the file could not be read, so that its last good state is to be kept. */
  broken: boolean;
  cache: DocumentCache;
}

type Collected = Pick<FileContent, "objects" | "problems">;

/** A List may hold Lists; deeper than this nobody writes. */
const MAX_LIST_DEPTH = 4;
const NAMESPACE_OF_FILES = "default";

/**
 * Reads the text of a file: YAML with any number of documents, or JSON; `kind: List` stands for its items. Kinds that
 * are not read (Deployments and the like) are passed over. `before` is the cache of the last reading. Never throws.
 */
export function readObjectFile(file: string, text: string, before?: DocumentCache): FileContent {
  const parsed = file.endsWith(".json") ? parseJsonDocument(text) : parseYamlDocuments(text, before);
  const broken = parsed.problems.length > 0;
  const content: FileContent = {
    objects: [],
    problems: parsed.problems.map((problem) => ({ file, ...problem })),
    broken,
    cache: parsed.cache,
  };
  for (const document of parsed.documents) collectObjects(file, document, 0, content);
  return content;
}

function collectObjects(file: string, { value, line }: SourceDocument, depth: number, into: Collected): void {
  if (value === null || value === undefined) return;
  const header = readHeader(value);
  if (header === undefined) {
    const message = "the document is no object: apiVersion and kind must be texts";
    into.problems.push({ file, line, code: "FILE_NO_OBJECT", message });
    return;
  }
  if (header.items !== undefined) {
    if (depth >= MAX_LIST_DEPTH) {
      into.problems.push({ file, line, code: "FILE_LIMIT", message: "Lists are nested too deeply" });
      return;
    }
    for (const item of header.items) collectObjects(file, { value: item, line }, depth + 1, into);
    return;
  }
  const kind = recogniseKind(header.apiVersion, header.kind);
  if (kind === undefined) return;
  if (header.name === undefined) {
    into.problems.push({ file, line, code: "FILE_OBJECT", message: `the ${kind} has no usable metadata.name` });
    return;
  }
  const namespace = isClusterScoped(kind) ? "" : (header.namespace ?? NAMESPACE_OF_FILES);
  const signature = signatureOf(value);
  if (signature === undefined) {
    into.problems.push({ file, line, code: "FILE_LIMIT", message: `the ${kind} is nested too deeply` });
    return;
  }
  into.objects.push({ ref: { kind, namespace, name: header.name }, object: value, signature });
}

interface Header {
  apiVersion: string;
  kind: string;
  name?: string;
  namespace?: string;
  items?: unknown[];
}

/** DNS subdomain: nothing else can be the name of an object, and a slash would blur which object is meant. */
const OBJECT_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

function readHeader(value: unknown): Header | undefined {
  const object = asMap(value);
  const { apiVersion, kind, items } = object;
  if (typeof apiVersion !== "string" || typeof kind !== "string") return undefined;
  if (kind.endsWith("List") && Array.isArray(items)) return { apiVersion, kind, items };
  const { name, namespace } = asMap(object.metadata);
  return {
    apiVersion,
    kind,
    ...(typeof name === "string" && OBJECT_NAME.test(name) && { name }),
    ...(typeof namespace === "string" && namespace !== "" && { namespace }),
  };
}

function asMap(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

/** Undefined for a value that is nested deeper than the stack. */
function signatureOf(value: unknown): string | undefined {
  try {
    return createHash("sha256").update(JSON.stringify(value)).digest("base64");
  } catch {
    return undefined;
  }
}
