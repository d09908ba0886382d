/** A reader of Dockerfiles, for what ours are written with: no here-documents, no escape directive, ARG before the first stage only. */

export interface Instruction {
  /** In capital letters. */
  keyword: string;
  /** `--from` and the like, by name. */
  flags: Record<string, string>;
  /** What follows, on one line. */
  text: string;
}

export interface ImageStage {
  name: string;
  /** Image or stage that it begins with; arguments of the build have their defaults. */
  from: string;
  instructions: Instruction[];
}

export interface Dockerfile {
  /** Arguments of the build, with their defaults. */
  args: Record<string, string>;
  stages: ImageStage[];
}

/** Reads the text of a Dockerfile. Throws an Error for what it does not know. */
export function readDockerfile(text: string): Dockerfile {
  const file: Dockerfile = { args: {}, stages: [] };
  for (const line of logicalLines(text)) {
    const { keyword, flags, text: rest } = instruction(line);
    const stage = file.stages.at(-1);
    if (keyword === "FROM") {
      const parts = /^(\S+) AS (\S+)$/.exec(rest);
      if (parts === null) throw new Error(`a stage without a name: ${line}`);
      file.stages.push({ name: parts[2], from: expanded(parts[1], file.args), instructions: [] });
    } else if (stage !== undefined) {
      stage.instructions.push({ keyword, flags, text: rest });
    } else if (keyword === "ARG") {
      const [name, value = ""] = rest.split(/=(.*)/s);
      file.args[name] = value;
    } else {
      throw new Error(`before the first stage: ${line}`);
    }
  }
  return file;
}

/** The words of an instruction in JSON form, `["a", "b"]`. Throws where it has another one. */
export function words({ text }: Instruction): string[] {
  return JSON.parse(text) as string[];
}

/** Lines without comments, continued ones put together. */
function logicalLines(text: string): string[] {
  const lines = text.split("\n").filter((line) => !/^\s*#/.test(line));
  const whole = lines.join("\n").replaceAll(/\\\n\s*/g, "");
  return whole.split("\n").filter((line) => line.trim() !== "");
}

function instruction(line: string): Instruction {
  const parts = /^([A-Z]+)\s+((?:--\S+\s+)*)(.*)$/.exec(line);
  if (parts === null) throw new Error(`no instruction: ${line}`);
  const flags = parts[2].trim().split(/\s+/).filter(Boolean);
  const pairs = flags.map((flag) => flag.slice(2).split("=", 2) as [string, string]);
  return { keyword: parts[1], flags: Object.fromEntries(pairs), text: parts[3] };
}

/** `${NAME}` and `${NAME:+text}`, of which the text may have the former. */
function expanded(text: string, args: Record<string, string>): string {
  const value = (name: string) => {
    if (args[name] === undefined) throw new Error(`there is no argument ${name}`);
    return args[name];
  };
  const inner = text.replaceAll(/\$\{(\w+):\+((?:[^{}]|\$\{\w+\})*)\}/g, (_, name, word) =>
    value(name) === "" ? "" : word,
  );
  return inner.replaceAll(/\$\{(\w+)\}/g, (_, name) => value(name));
}
