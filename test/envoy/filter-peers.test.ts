import { describe, expect, it } from "vitest";
import { peers } from "../support/rules.js";
import { upstream } from "./bundles.js";
import { filterWith, TO_PLAIN } from "./filter-plugin.js";

describe("peers", () => {
  it("are counted until their requests end, also those that end without an answer", () => {
    const set = upstream({ ...peers("plain", [80, 81]), limits: { maxConns: 1 } });
    const { host, get } = filterWith(TO_PLAIN, [set]);
    const [first, second] = [get(), get()];
    expect(new Set([first.destination, second.destination]).size).toBe(2);
    expect(get().answer?.status).toBe(502);
    host.end(first.id);
    expect(get().destination).toBe(first.destination);
  });

  it("are out for a while after as many failures as they may have", () => {
    let now = 1_000_000;
    const set = upstream({ ...peers("plain", [80, 81]), limits: { maxFails: 1, failTimeout: 10_000 } });
    const { host, get } = filterWith(TO_PLAIN, [set], { now: () => now });
    host.properties = { "response.code_details": "upstream_reset_before_response_started{connection_timeout}" };
    const failed = get();
    host.respond(failed, [[":status", "503"]]);
    host.end(failed.id);
    host.properties = { "response.code_details": "via_upstream" };
    const others = Array.from({ length: 6 }, () => {
      const stream = get();
      host.respond(stream, [[":status", "200"]]);
      host.end(stream.id);
      return stream.destination;
    });
    expect(others).not.toContain(failed.destination);
    now += 20_000;
    const later = Array.from({ length: 6 }, () => get().destination);
    expect(later).toContain(failed.destination);
  });
});

describe("what Envoy answers in the place of a peer", () => {
  const set = upstream({ ...peers("plain", [80, 81]), limits: { maxFails: 1, failTimeout: 10_000 } });
  const RESET = "upstream_reset_before_response_started";

  /** True if the peer is left out after such an answer. */
  function takesOut(details: string, status: string): boolean {
    const { host, get } = filterWith(TO_PLAIN, [set], { now: () => 1_000_000 });
    host.properties = { "response.code_details": details };
    const first = get();
    host.respond(first, [[":status", status]]);
    host.end(first.id);
    return !Array.from({ length: 4 }, () => get().destination).includes(first.destination);
  }

  it.each([
    [`${RESET}{connection_timeout}`, "503"],
    [`${RESET}{remote_connection_failure|delayed_connect_error:_Connection_refused}`, "503"],
    [`${RESET}{connection_termination}`, "503"],
    ["upstream_response_timeout", "504"],
    ["upstream_per_try_timeout", "504"],
    ["no_healthy_upstream", "503"],
    ["stream_idle_timeout", "504"],
  ])("is a failure of the peer where it is for %s with %s", (details, status) => {
    expect(takesOut(details, status)).toBe(true);
  });

  it.each([
    ["stream_idle_timeout", "408"],
    ["upstream_max_stream_duration_reached", "408"],
    ["request_header_timeout", "408"],
    ["request_overall_timeout", "408"],
    ["request_payload_too_large", "413"],
    ["http1.codec_error", "400"],
    ["duration_timeout", "504"],
    ["overload", "503"],
    ["rate_limited", "429"],
    ["njet_kic", "200"],
    ["upstream", "503"],
    ["", "503"],
    [`${RESET}{overflow}`, "503"],
  ])("is none where it is for %s with %s", (details, status) => {
    expect(takesOut(details, status)).toBe(false);
  });
});
