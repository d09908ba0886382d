import { readFileSync } from "node:fs";

/** Version of the package, from the compiled controller and from the sources. */
export const PACKAGE_VERSION: string = readVersion();

function readVersion(): string {
  for (const place of ["../../../package.json", "../../package.json"]) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL(place, import.meta.url), "utf8"));
      if (name === "njet-kic") return version;
    } catch {}
  }
  throw new Error("the package.json of njet-kic is missing");
}
