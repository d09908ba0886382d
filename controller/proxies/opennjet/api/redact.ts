/** Longest message that is taken from an answer, in UTF-16 units. */
const MOST_MESSAGE = 1024;
/** Shorter words tell nothing of a key, and the words of messages are among them. */
const SHORTEST_SECRET = 12;
const PEM = /-----BEGIN [\s\S]*?(?:-----END [^-]*-----|$)/g;

/**
 * The text of an answer as it may be shown: on one line, not endless, and without any part of what was secret in the
 * request. OpenNJet quotes what it can't parse, up to whole private keys.
 */
export function redact(text: string, secrets: readonly string[] = []): string {
  const without = text
    .replace(PEM, "[PEM]")
    .replace(/[^\s"'`,;:[\](){}]+/g, (word) => (isSecret(word, secrets) ? "[secret]" : word));
  const line = without.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ").trim();
  return line.length <= MOST_MESSAGE ? line : `${line.slice(0, MOST_MESSAGE)} ...`;
}

function isSecret(word: string, secrets: readonly string[]): boolean {
  return word.length >= SHORTEST_SECRET && secrets.some((secret) => secret.includes(word));
}
