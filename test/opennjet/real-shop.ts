/** The run folder of an OpenNJet that `run` serves a folder with. */
import { chmodSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ControlClient } from "../../controller/proxies/nginx/control-client.js";
import { OpenNjetApi } from "../../controller/proxies/opennjet/api/index.js";
import { makeFolder } from "../cli/cli-support.js";
import { until } from "../nginx/driven-nginx.js";
import { cleanup } from "../support/harness.js";

export const OPENNJET = ["--proxy", "opennjet", "--workers", "2", "--no-access-log"];

/** A run folder, and what is in it; the OpenNJet of it is ended after the test, also where its controller was killed. */
export function runFolder() {
  const path = makeFolder();
  // Workers that are another user have to get through.
  chmodSync(path, 0o711);
  const inside = (name: string) => join(path, "opennjet", name);
  /** What workers can get into. */
  const plane = (...names: string[]) => join(path, "opennjet-temp", "plane", ...names);
  const client = () => {
    const token = readFileSync(inside("token"), "utf8").trim();
    const made = new ControlClient(inside("control.sock"), token);
    cleanup(() => made.close());
    return made;
  };
  const api = () => {
    const made = new OpenNjetApi({ origin: "http://opennjet", socketPath: inside("api.sock") });
    cleanup(() => made.close());
    return made;
  };
  cleanup(async () => {
    if (!existsSync(inside("token"))) return;
    const state = await client()
      .state()
      .catch(() => undefined);
    if (state === undefined) return;
    const { master } = state;
    process.kill(master, "SIGTERM");
    // The folder can't be taken away before.
    await until("OpenNJet ends", () => !existsSync(`/proc/${master}`));
  });
  return { path, inside, plane, client, api };
}
