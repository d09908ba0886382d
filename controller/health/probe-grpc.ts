import { connect, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import type { HealthCheck } from "../model/types.js";
import { Attempt, type Probe, reasonOf } from "./attempt.js";
import { authority, ignoreErrors, openConnection, whenConnected } from "./connection.js";
import { checkRequest, servingStatus } from "./grpc-message.js";
import type { Target } from "./target.js";

/** An answer has seven bytes; more than this is none. */
const MOST_ANSWER = 1024;
/** Headers that HTTP/2 does not have, or that are ours. */
const NOT_SENT = /^(:.*|host|connection|keep-alive|proxy-connection|transfer-encoding|upgrade|te|content-.*|grpc-.*)$/i;

/** Calls grpc.health.v1.Health/Check over HTTP/2: with prior knowledge, or over TLS. Passes where the answer is SERVING. */
export const probeGrpc: Probe = (target, done) => {
  const { address, port, check } = target;
  const socket = openConnection(address, port, check.tls, ["h2"]);
  const session = connect(`http${check.tls ? "s" : ""}://${authority(address, port)}`, {
    createConnection: () => socket,
    settings: { enablePush: false },
    maxSessionMemory: 1,
  });
  const attempt = new Attempt(done, () => {
    ignoreErrors(session);
    ignoreErrors(socket);
    session.destroy();
    socket.destroy();
  });
  attempt.step("connecting", check.connectTimeout);
  const failed = (error: unknown) => attempt.fail(reasonOf(error));
  socket.on("error", failed);
  session.on("error", failed);
  session.on("close", () => attempt.fail("the peer closed the connection without an answer"));
  whenConnected(socket, check.tls, () => {
    if (attempt.over) return;
    attempt.step("sending", check.sendTimeout);
    try {
      const call = session.request(headersOf(target));
      call.on("error", failed);
      call.on("finish", () => attempt.step("waiting for the answer", check.readTimeout));
      readAnswer(call, attempt, check);
      call.end(checkRequest(check.grpcService));
    } catch (error) {
      failed(error);
    }
  });
  return () => attempt.cancel();
};

type Call = ReturnType<ReturnType<typeof connect>["request"]>;

function readAnswer(call: Call, attempt: Attempt, check: HealthCheck): void {
  let grpcStatus: string | undefined;
  let httpStatus: number | undefined;
  const parts: Buffer[] = [];
  let size = 0;
  const take = (headers: IncomingHttpHeaders) => {
    const value = headers["grpc-status"];
    if (typeof value === "string" && /^\d{1,3}$/.test(value)) grpcStatus = value;
  };
  call.on("response", (headers) => {
    httpStatus = headers[":status"];
    take(headers);
  });
  call.on("trailers", take);
  call.on("data", (part: Buffer) => {
    size += part.length;
    if (size > MOST_ANSWER) attempt.fail("the answer is no HealthCheckResponse");
    else parts.push(part);
  });
  call.on("close", () => {
    if (httpStatus === undefined) return attempt.fail("the peer closed the call without an answer");
    if (httpStatus !== 200) return attempt.fail(`status ${httpStatus}`);
    if (grpcStatus === undefined) return attempt.fail("the answer has no grpc-status");
    judge(attempt, Number(grpcStatus), servingStatus(Buffer.concat(parts)), check);
  });
}

/** `grpcStatus` of a check is for peers that have no health service: they answer with an error that is known. */
function judge(attempt: Attempt, grpcStatus: number, serving: string | undefined, check: HealthCheck): void {
  if (grpcStatus !== 0) {
    const reason = `grpc-status ${grpcStatus}`;
    if (grpcStatus === check.grpcStatus) attempt.pass(reason);
    else attempt.fail(reason);
  } else if (serving === "SERVING") attempt.pass(serving);
  else attempt.fail(serving ?? "the answer is no HealthCheckResponse");
}

function headersOf({ address, port, check }: Target): OutgoingHttpHeaders {
  const host = check.headers.find(({ name }) => name.toLowerCase() === "host");
  const headers: OutgoingHttpHeaders = {
    ":method": "POST",
    ":path": "/grpc.health.v1.Health/Check",
    ":authority": host?.value ?? authority(address, port),
    "user-agent": "njet-kic-health",
    "content-type": "application/grpc",
    te: "trailers",
  };
  for (const { name, value } of check.headers) {
    const lower = name.toLowerCase();
    if (NOT_SENT.test(lower)) continue;
    const before = headers[lower];
    headers[lower] = before === undefined || lower === "user-agent" ? value : [before, value].flat().map(String);
  }
  return headers;
}
