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
/** Characters; more than the 1.5 MB that a cluster stores at most. */
const MAX_OBJECT_SIZE = 4 * 1024 * 1024;
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
  if (!isObjectName(header.name) || !isObjectName(header.namespace)) {
    const message = `the ${kind} has no usable metadata.name, or a metadata.namespace that is none`;
    into.problems.push({ file, line, code: "FILE_OBJECT", message });
    return;
  }
  const namespace = isClusterScoped(kind) ? "" : header.namespace;
  const signature = signatureOf(value as object);
  if (signature === undefined) {
    into.problems.push({ file, line, code: "FILE_LIMIT", message: `the ${kind} is too large or nested too deeply` });
    return;
  }
  into.objects.push({ ref: { kind, namespace, name: header.name }, object: value, signature });
}

interface Header {
  apiVersion: string;
  kind: string;
  name: unknown;
  namespace: unknown;
  items?: unknown[];
}

function readHeader(value: unknown): Header | undefined {
  const object = asMap(value);
  const { apiVersion, kind, items } = object;
  if (typeof apiVersion !== "string" || typeof kind !== "string") return undefined;
  const { name, namespace } = asMap(object.metadata);
  const header = { apiVersion, kind, name, namespace: namespace ?? NAMESPACE_OF_FILES };
  return kind.endsWith("List") && Array.isArray(items) ? { ...header, items } : header;
}

/** DNS subdomain: nothing else can be the name of an object, and a slash would blur which object is meant. */
function isObjectName(name: unknown): name is string {
  return typeof name === "string" && /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(name);
}

function asMap(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

/** Signatures of values that were read before: documents from the cache are the same values again. */
const signatures = new WeakMap<object, string>();

/** Undefined for a value that is too large, as one with many aliases of one text can be, or nested deeper than the stack. */
function signatureOf(value: object): string | undefined {
  const known = signatures.get(value);
  if (known !== undefined) return known;
  let size = 0;
  const measure = (name: string, part: unknown) => {
    size += name.length + (typeof part === "string" ? part.length : 1);
    if (size > MAX_OBJECT_SIZE) throw new RangeError("the object is too large");
    return part;
  };
  try {
    const signature = createHash("sha256").update(JSON.stringify(value, measure)).digest("base64");
    signatures.set(value, signature);
    return signature;
  } catch {
    return undefined;
  }
}
