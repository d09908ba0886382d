/** The first code block of a language (with a name behind it, where one is given) in a page. Throws where there is none. */
export function codeBlock(page: string, language: string): string {
  const found = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "ms").exec(page);
  if (!found) throw new Error(`no block of ${language}`);
  return found[1];
}
