import { expect, it } from "vitest";
import { requiredHosts } from "./required-hosts.js";

const KEYS = ["node", "go", "envoy"];

it("no host is required unless the environment says so", () => {
  expect([...requiredHosts(undefined, KEYS), ...requiredHosts("", KEYS)]).toEqual([]);
});

it("hosts are required by their keys, or all of them", () => {
  expect([...requiredHosts("go,envoy", KEYS)]).toEqual(["go", "envoy"]);
  expect([...requiredHosts("all", KEYS)]).toEqual(KEYS);
});

it("a key that no host has is an error, and not a host that nobody misses", () => {
  expect(() => requiredHosts("go,evnoy", KEYS)).toThrow(
    "NJET_KIC_REQUIRE_HOSTS: no host is called evnoy; there are node,go,envoy",
  );
});
