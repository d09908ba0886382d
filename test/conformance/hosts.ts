import { loadCore } from "../../controller/core-file.js";
import { noEnvoy } from "../envoy/installation.js";
import { replayInEnvoy, replayInHost } from "../envoy/replay.js";
import { nativeParts } from "../native/worker.js";
import { readyGo, runGo } from "./go.js";
import { replayInWorker } from "./native.js";
import { replay } from "./suite.js";

/** Replays the suite in a folder; resolves with the lines of all decisions. */
export type Replay = (folder: string) => Promise<string>;

/** A program that embeds the core. */
export interface ConformanceHost {
  /** What NJET_KIC_REQUIRE_HOSTS calls it. */
  key: string;
  name: string;
  /** What it takes to run it, found or built; or why that can't be had on this machine. Rejects where a build fails. */
  prepare(): Promise<{ skipped: string } | { replay: Replay }>;
}

/** All hosts; their decisions are compared with those of the first one. */
export const HOSTS: ConformanceHost[] = [
  {
    key: "node",
    name: "Node",
    async prepare() {
      const core = await loadCore();
      return { replay: async (folder) => replay(core, folder) };
    },
  },
  {
    key: "native",
    name: "native code in a worker of NGINX",
    async prepare() {
      const parts = await nativeParts();
      if (parts.reason !== undefined) return { skipped: parts.reason };
      return { replay: (folder) => replayInWorker(parts, folder) };
    },
  },
  {
    key: "go",
    name: "Go, by wazero",
    async prepare() {
      const found = await readyGo();
      if ("skipped" in found) return found;
      return { replay: (folder) => runGo(found.go, ["run", "./internal/replay", folder]) };
    },
  },
  {
    key: "filter",
    name: "the filter of Envoy, in a small host of proxy-wasm",
    async prepare() {
      return { replay: replayInHost };
    },
  },
  {
    key: "envoy",
    name: "the filter of Envoy, in Envoy",
    async prepare() {
      return noEnvoy === undefined ? { replay: replayInEnvoy } : { skipped: noEnvoy };
    },
  },
];
