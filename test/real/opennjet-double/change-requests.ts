import type { LocationEntry, Message } from "./messages.js";

/** What the control server itself refuses, with HTTP 400 and code 4. */
export class BodyRefused extends Error {}

const SHORTEST_BODY = 2;

interface Kind {
  about: "location" | "server" | "upstream";
  /** As it stands in messages about verbs. */
  noun: string;
  keys: readonly string[];
}

export const LOCATION: Kind = {
  about: "location",
  noun: "location",
  keys: ["type", "addr_port", "server_name", "locations", "location_rule", "location_name"],
};
export const SERVER: Kind = {
  about: "server",
  noun: "server",
  keys: ["type", "addr_port", "listen_option", "server_name", "server_body"],
};
// Its messages about verbs speak of servers too.
export const UPSTREAM: Kind = { about: "upstream", noun: "server", keys: ["type", "upstream_name", "upstream_body"] };
const ENTRY_KEYS = ["location_rule", "location_name", "location_body", "proxy_pass", "locations"];

/** The message that the body of a request becomes. Throws BodyRefused. */
export function readChange({ about, noun, keys }: Kind, method: string, text: string): Message {
  const body = parse(text);
  refuseUnknown(body, keys);
  if (about !== "upstream") needText(body, "addr_port", "addr_port error!!!", "addr_port null!!!");
  const type = typeof body.type === "string" ? body.type.trim() : "";
  if (type !== "add" && type !== "del") throw new BodyRefused("type error!!!");
  if (method !== (type === "add" ? "POST" : "PUT")) throw new BodyRefused(`no support method when ${type} ${noun}!`);
  if (about === "location") readLocations(body, type);
  if (about === "upstream") needText(body, "upstream_name", "upstream_name is null!", "upstream_name is null!");
  else needText(body, "server_name", "server_name is null!", "server_name is null!");
  const trimmed = Object.entries(body).map(([key, value]) => [key, typeof value === "string" ? value.trim() : value]);
  return { about, ...Object.fromEntries(trimmed) } as Message;
}

function parse(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = text.length < SHORTEST_BODY ? undefined : JSON.parse(text);
  } catch {
    // As if nothing had been sent.
  }
  if (typeof value !== "object" || value === null) throw new BodyRefused("json parser error!");
  if (Array.isArray(value)) throw new BodyRefused("json error!!!");
  return value as Record<string, unknown>;
}

/** The last one is told. */
function refuseUnknown(body: Record<string, unknown>, keys: readonly string[]): void {
  const unknown = Object.keys(body).findLast((key) => !keys.includes(key));
  if (unknown !== undefined) throw new BodyRefused(`invalid parameter:${unknown}!`);
}

function needText(body: Record<string, unknown>, key: string, missing: string, empty: string): void {
  const value = body[key];
  if (typeof value !== "string") throw new BodyRefused(missing);
  if (value.trim() === "") throw new BodyRefused(empty);
}

function readLocations(body: Record<string, unknown>, type: string): void {
  if (body.locations === undefined) {
    if (type === "add") throw new BodyRefused("locations error!!!");
  } else {
    if (!Array.isArray(body.locations)) throw new BodyRefused("locations error!!!");
    if (body.locations.length === 0) throw new BodyRefused("locations []  error!!!");
    readEntries(body.locations);
  }
  if (body.location_rule !== undefined && typeof body.location_rule !== "string") {
    throw new BodyRefused("location_rule error!");
  }
  if (type === "del") needText(body, "location_name", "location_name is null!", "location_name is null!");
}

function readEntries(entries: unknown[]): void {
  for (const entry of entries as (Record<string, unknown> & LocationEntry)[]) {
    if (typeof entry !== "object" || entry === null) throw new BodyRefused("json error!!!");
    refuseUnknown(entry, ENTRY_KEYS);
    if (entry.location_rule !== undefined && typeof entry.location_rule !== "string") {
      throw new BodyRefused("location_rule error!");
    }
    needText(entry, "location_name", "location_name error!!!", "location_name is null!");
    if (entry.proxy_pass !== undefined && typeof entry.proxy_pass !== "string")
      throw new BodyRefused("proxy_pass error!!!");
    if (entry.locations !== undefined) {
      if (!Array.isArray(entry.locations)) throw new BodyRefused("locations field error!");
      readEntries(entry.locations);
    }
  }
}
