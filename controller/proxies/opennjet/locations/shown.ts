const MOST_SHOWN = 200;

/** A text of an object in a message: quoted, in one line, without control characters, and not at any length. */
export function shown(text: string): string {
  const short = text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text;
  const code = (c: string) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(short).replaceAll(/[\x7f-\x9f\u2028\u2029]/g, code);
}
