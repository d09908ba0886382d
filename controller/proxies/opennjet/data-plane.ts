import { Agent, type RequestOptions, request } from "node:http";
import { connect } from "node:net";
import type { NginxListener } from "../nginx/configured-values.js";
import type { DataPlane, PlaneAnswer } from "./locations/questions.js";

const ANSWER_TIME = 2_000;
const MOST_BODY = 4096;
/** Says that it is not about somebody else's connection (PROXY protocol, version 1). */
const NO_PROXY = "PROXY UNKNOWN\r\n";

/** An OpenNJet on this machine as its clients see it, by the plain listener that it has when it is asked. */
export function dataPlane(listener: () => NginxListener, workers: number, proxyProtocol: boolean): DataPlane {
  return {
    workers: () => workers,
    connect() {
      const { address, port } = listener();
      const any = address === undefined || address === "0.0.0.0";
      const host = any ? "127.0.0.1" : address === "::" ? "::1" : address;
      let isOpen = false;
      const createConnection = () => {
        // Another connection may be another worker's.
        if (isOpen) throw new Error("the data plane has ended a connection");
        isOpen = true;
        const socket = connect({ host, port });
        if (proxyProtocol) socket.write(NO_PROXY);
        return socket;
      };
      const agent = Object.assign(new Agent({ keepAlive: true, maxSockets: 1 }), { createConnection });
      return {
        ask: ({ host: name, path }) => answerOf({ path, headers: { Host: name }, agent }),
        close: () => agent.destroy(),
      };
    },
  };
}

function answerOf(options: RequestOptions): Promise<PlaneAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request({ ...options, timeout: ANSWER_TIME }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (text: string) => {
        if (body.length < MOST_BODY) body += text;
      });
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, location: response.headers.location, body }),
      );
      response.on("error", reject);
    });
    sent.on("timeout", () => sent.destroy(new Error("the data plane does not answer")));
    sent.on("error", reject);
    sent.end();
  });
}
