import { LineCounter, parseAllDocuments } from "yaml";
import type { FileProblem } from "./file-problem.js";

/** Uses of one YAML alias, counted with what it contains: more is how a small file fills the memory. */
const MAX_ALIASES = 100;

/** One document of a file. */
export interface SourceDocument {
  value: unknown;
  /** Line that the document starts at, counted from 1. */
  line: number;
}

/** Parsed documents by their text, so that one changed document of a long file is parsed alone. */
export type DocumentCache = Map<string, unknown>;

export interface ParsedDocuments {
  documents: SourceDocument[];
  problems: Omit<FileProblem, "file">[];
  cache: DocumentCache;
}

/** Splits a YAML file (JSON is YAML) into documents and parses those that `before` does not hold. Never throws. */
export function parseYamlDocuments(text: string, before: DocumentCache = new Map()): ParsedDocuments {
  const result: ParsedDocuments = { documents: [], problems: [], cache: new Map() };
  for (const part of splitDocuments(text)) {
    const known = before.get(part.text);
    if (known !== undefined) {
      result.cache.set(part.text, known);
      result.documents.push({ value: known, line: part.line });
    } else {
      parsePart(part, result);
    }
  }
  return result;
}

/** Parses a JSON file, which is one document. Never throws. */
export function parseJsonDocument(text: string): ParsedDocuments {
  try {
    return { documents: [{ value: JSON.parse(text), line: 1 }], problems: [], cache: new Map() };
  } catch (error) {
    // The message of the engine quotes the text; only its position is taken.
    const position = /position (\d+)/.exec(error instanceof Error ? error.message : "");
    const line = position === null ? undefined : text.slice(0, Number(position[1])).split("\n").length;
    const problem = { code: "FILE_SYNTAX", message: "is no correct JSON", ...(line && { line }) } as const;
    return { documents: [], problems: [problem], cache: new Map() };
  }
}

/**
 * Cuts at document markers: a line that starts with `---` is one wherever it stands, also inside of a block scalar
 * (YAML 1.2.2, section 9.1.2). A file with directives is left whole, because they belong to the document that follows.
 */
function splitDocuments(text: string): { text: string; line: number }[] {
  if (/^%/m.test(text)) return [{ text, line: 1 }];
  const parts: { text: string; line: number }[] = [];
  let start = 0;
  let line = 1;
  for (const marker of text.matchAll(/^---(?=\s|$)/gm)) {
    if (marker.index === start) continue;
    const part = text.slice(start, marker.index);
    parts.push({ text: part, line });
    line += part.split("\n").length - 1;
    start = marker.index;
  }
  parts.push({ text: text.slice(start), line });
  return parts;
}

function parsePart(part: { text: string; line: number }, result: ParsedDocuments): void {
  const lines = new LineCounter();
  try {
    const documents = parseAllDocuments(part.text, { lineCounter: lines, prettyErrors: false, merge: true });
    for (const document of documents) {
      const [error] = document.errors;
      if (error !== undefined) {
        const line = part.line + lines.linePos(error.pos[0]).line - 1;
        const message = `is no correct YAML: ${error.code.toLowerCase().replaceAll("_", " ")}`;
        result.problems.push({ line, code: "FILE_SYNTAX", message });
        continue;
      }
      const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
      const line = part.line + lines.linePos(document.range[0]).line - 1;
      result.documents.push({ value, line });
      if (documents.length === 1 && value !== null) result.cache.set(part.text, value);
    }
  } catch {
    // Too many uses of aliases, or nesting deeper than the stack.
    const message = "has YAML aliases that grow too large, or is nested too deeply";
    result.problems.push({ line: part.line, code: "FILE_LIMIT", message });
  }
}
