import type { FoundParts } from "../native/worker.js";
import { Nginx } from "../support/nginx.js";

/** Has a worker of NGINX with the native core replay the suite in a folder; resolves with its lines. */
export async function replayInWorker({ nginx, library }: FoundParts, folder: string): Promise<string> {
  const worker = await Nginx.start(nginx, {
    server: `
      location = / { return 204; }
      location = /replay {
        content_by_lua_block { require("test.conformance.replay").serve("${library}", "${folder}") }
      }`,
  });
  try {
    const { status, body } = await worker.get("/replay");
    if (status !== 200) throw new Error(`the worker answered ${status}: ${worker.errorLog().slice(-2000)}`);
    return body.toString("latin1");
  } finally {
    await worker.close();
  }
}
