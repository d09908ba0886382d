import { join } from "node:path";
import { ControlClient } from "../../controller/proxies/nginx/control-client.js";
import { NginxFolder } from "../../controller/proxies/nginx/run-folder.js";
import { makeFolder } from "../cli/cli-support.js";
import { cleanup } from "../support/harness.js";

/** A run folder; the NGINX in it is ended after the test, also where its controller was killed. */
export function runFolder(): { path: string; client(): ControlClient } {
  const path = makeFolder();
  const client = () => {
    const { socket, token } = NginxFolder.of(join(path, "nginx", "control.sock"));
    const made = new ControlClient(socket, token);
    cleanup(() => made.close());
    return made;
  };
  cleanup(async () => {
    const state = await client()
      .state()
      .catch(() => undefined);
    if (state !== undefined) process.kill(state.master, "SIGTERM");
  });
  return { path, client };
}
