/** A real NGINX worker with the native core, for tests; or why there is none. */

import { expect } from "vitest";
import {
  findNginx,
  type NginxInstallation,
  nativeCore,
  PartUnavailable,
} from "../../controller/proxies/nginx/parts.js";
import { Nginx } from "../support/nginx.js";
import type { Replay } from "./replay.js";

/** What tests of the native core need; `reason` says what is missing. */
export type Parts = FoundParts | { reason: string };

export interface FoundParts {
  nginx: NginxInstallation;
  library: string;
  reason?: undefined;
}

/** Finds or makes the parts, and prints the reason where that can't be done. */
export async function nativeParts(): Promise<Parts> {
  const say = (text: string) => console.error(text);
  try {
    return { nginx: await findNginx({ unpacked: true, say }), library: await nativeCore({ say }) };
  } catch (error) {
    if (!(error instanceof PartUnavailable)) throw error;
    console.error(`tests of the native core are skipped: ${error.message}`);
    return { reason: error.message };
  }
}

/** A worker whose Lua loads the library. */
export function startWorker({ nginx, library }: FoundParts): Promise<Nginx> {
  return Nginx.start(nginx, {
    http: `init_worker_by_lua_block { require("test.native.lua.replay").path = "${library}" }`,
    server: `
      client_body_buffer_size 1m;
      location = / { content_by_lua_block { ngx.say(ngx.worker.pid()) } }
      location = /replay { content_by_lua_block { require("test.native.lua.replay").serve() } }`,
  });
}

/** The number of the worker's process. */
export async function pidOf(worker: Nginx): Promise<string> {
  return (await worker.get("/")).body.toString().trim();
}

/** Has the worker carry out what the replay has so far, and compares each line. */
export async function compare(worker: Nginx, replay: Replay): Promise<string[]> {
  const { operations, lines } = replay.take();
  const { status, body } = await worker.post("/replay", operations);
  if (status !== 200) expect.fail(`the worker answered ${status}: ${worker.errorLog().slice(-2000)}`);
  const answers = body.toString("latin1").trimEnd().split("\n");
  const differing = lines.findIndex((line, i) => line !== answers[i]);
  if (differing >= 0) expect(answers[differing], `operation ${differing}`).toBe(lines[differing]);
  expect(answers.length).toBe(lines.length);
  return lines;
}
