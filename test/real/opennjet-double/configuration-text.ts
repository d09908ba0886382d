/** Configuration text as OpenNJet's parser reads it (`njt_conf_file.c`), with its messages. */

export interface Directive {
  name: string;
  /** After the name, without quotes and escapes. */
  args: string[];
  /** Name and args as they are written, quotes and escapes included. */
  written: string[];
  line: number;
  /** Undefined where the directive ends with a semicolon. */
  block?: Directive[];
  /** Text between the braces of a Lua block. */
  lua?: string;
}

/** What the parser says. The name of the file and the line go behind it. */
export class ConfigurationError extends Error {
  constructor(
    message: string,
    readonly line: number,
  ) {
    super(message);
  }
}

const SPACE = /[ \t\r\n]/;
const ESCAPES: Record<string, string> = { t: "\t", r: "\r", n: "\n", '"': '"', "'": "'", "\\": "\\" };

/** Reads directives up to the end of the text. Throws ConfigurationError. */
export function parseConfiguration(text: string): Directive[] {
  const reader = new Reader(text);
  const directives = reader.directives(false);
  return directives;
}

class Reader {
  private at = 0;
  private line = 1;

  constructor(private readonly text: string) {}

  directives(inside: boolean): Directive[] {
    const found: Directive[] = [];
    for (;;) {
      const words = this.words();
      if (words === "end") {
        if (inside) throw new ConfigurationError('unexpected end of file, expecting "}"', this.line);
        return found;
      }
      if (words === "}") {
        if (!inside) throw new ConfigurationError('unexpected "}"', this.line);
        return found;
      }
      const written = words.words;
      const directive: Directive = {
        name: withoutEscapes(written[0]),
        args: written.slice(1).map(withoutEscapes),
        written,
        line: words.line,
      };
      if (words.opens) {
        if (directive.name.endsWith("_by_lua_block")) directive.lua = this.lua();
        else directive.block = this.directives(true);
      }
      found.push(directive);
    }
  }

  /** The words of one directive. */
  private words(): "end" | "}" | { words: string[]; line: number; opens: boolean } {
    const words: string[] = [];
    let line = 0;
    for (;;) {
      this.skipSpace();
      const c = this.text[this.at];
      if (c === undefined) {
        if (words.length === 0) return "end";
        throw new ConfigurationError('unexpected end of file, expecting ";" or "}"', this.line);
      }
      if (c === ";" || c === "{") {
        if (words.length === 0) throw new ConfigurationError(`unexpected "${c}"`, this.line);
        this.at++;
        return { words, line, opens: c === "{" };
      }
      if (c === "}") {
        if (words.length > 0) throw new ConfigurationError('unexpected "}"', this.line);
        this.at++;
        return "}";
      }
      if (c === "#") {
        while (this.at < this.text.length && this.text[this.at] !== "\n") this.at++;
        continue;
      }
      if (words.length === 0) line = this.line;
      words.push(c === '"' || c === "'" ? this.quoted(c) : this.plain());
    }
  }

  private skipSpace(): void {
    for (; this.at < this.text.length && SPACE.test(this.text[this.at]); this.at++) {
      if (this.text[this.at] === "\n") this.line++;
    }
  }

  private plain(): string {
    const start = this.at;
    let variable = false;
    for (; this.at < this.text.length; this.at++) {
      const c = this.text[this.at];
      if (c === "{" && variable) {
        variable = false;
        continue;
      }
      variable = c === "$";
      if (c === "\\") this.at++;
      else if (SPACE.test(c) || c === ";" || c === "{") break;
    }
    return this.text.slice(start, this.at);
  }

  private quoted(quote: string): string {
    const start = this.at++;
    for (; this.text[this.at] !== quote; this.at++) {
      if (this.at >= this.text.length) {
        throw new ConfigurationError('unexpected end of file, expecting ";" or "}"', this.line);
      }
      if (this.text[this.at] === "\\") this.at++;
      if (this.text[this.at] === "\n") this.line++;
    }
    this.at++;
    const next = this.text[this.at];
    if (next !== undefined && !SPACE.test(next) && !";{)".includes(next)) {
      throw new ConfigurationError(`unexpected "${next}"`, this.line);
    }
    return this.text.slice(start, this.at);
  }

  /** Up to the brace that closes a Lua block; braces in Lua strings are not told apart. */
  private lua(): string {
    const start = this.at;
    for (let depth = 1; this.at < this.text.length; this.at++) {
      const c = this.text[this.at];
      if (c === "\n") this.line++;
      if (c === "{") depth++;
      if (c === "}" && --depth === 0) return this.text.slice(start, this.at++).trim();
    }
    throw new ConfigurationError("unexpected end of file in a Lua block", this.line);
  }
}

function withoutEscapes(written: string): string {
  const quoted = written.startsWith('"') || written.startsWith("'");
  const inner = quoted ? written.slice(1, -1) : written;
  return inner.replaceAll(/\\([\s\S])/g, (whole, c: string) => ESCAPES[c] ?? whole);
}
