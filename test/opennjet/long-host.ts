/** A host name of 253 characters, the most that there are. */
export function longHost(letter: string): string {
  return `${[63, 63, 63, 57].map((length) => letter.repeat(length)).join(".")}.com`;
}
