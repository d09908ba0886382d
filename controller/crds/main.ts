import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { definitionFiles } from "./files.js";

const FOLDER = fileURLToPath(new URL("../../../deploy/crds", import.meta.url));

mkdirSync(FOLDER, { recursive: true });
for (const [name, text] of definitionFiles()) {
  writeFileSync(join(FOLDER, name), text);
  console.error(`deploy/crds/${name}`);
}
