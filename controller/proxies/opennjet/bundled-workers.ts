import { request } from "node:http";
import type { BundledWorkers, WorkerAnswer } from "./bundled-backends.js";
import { WORKER_PATH } from "./bundled-lua.js";

const ANSWER_TIME = 2_000;
const MOST_ANSWER = 256;

/** The workers of an OpenNJet with the bundled balancer, by its control socket; each question is a connection. */
export function bundledWorkers(socketPath: string, count: number): BundledWorkers {
  return {
    count: () => count,
    ask: (backend) =>
      new Promise((resolve, reject) => {
        const path = `${WORKER_PATH}?name=${encodeURIComponent(backend)}`;
        const sent = request({ socketPath, path, agent: false, timeout: ANSWER_TIME }, (response) => {
          let text = "";
          response.setEncoding("utf8");
          response.on("data", (part: string) => {
            if (text.length < MOST_ANSWER) text += part;
          });
          response.on("end", () => {
            const answer = response.statusCode === 200 ? parsed(text) : undefined;
            if (answer === undefined) reject(new Error("a worker gave no answer that can be read"));
            else resolve(answer);
          });
          response.on("error", reject);
        });
        sent.on("timeout", () => sent.destroy(new Error("no worker answers")));
        sent.on("error", reject);
        sent.end();
      }),
  };
}

function parsed(text: string): WorkerAnswer | undefined {
  try {
    const { pid, has } = JSON.parse(text) as Record<string, unknown>;
    return typeof pid === "number" && typeof has === "boolean" ? { pid, has } : undefined;
  } catch {
    return undefined;
  }
}
