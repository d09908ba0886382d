import { stringify } from "yaml";
import { customResourceDefinitions } from "./definition.js";

const HEAD = `# Made by \`npm run crds\` from the readers in controller/resources: a change by hand is lost.\n`;

/** The text of each file of deploy/crds that is made, by its name. The same readers give the same text. */
export function definitionFiles(): Map<string, string> {
  return new Map(
    customResourceDefinitions().map((definition) => {
      const { group, names } = definition.spec;
      const text = stringify(definition, { aliasDuplicateObjects: false, lineWidth: 0 });
      return [`${group}_${names.plural}.yaml`, HEAD + text];
    }),
  );
}
