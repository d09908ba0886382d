/**
 * The resource that brings a bundle into Envoy: the filter with its configuration, as a file that Envoy watches
 * (`path_config_source`, in the binary form of a DiscoveryResponse). Numbers of fields: Envoy's API, version 3.
 */

import { packBundle } from "./packing.js";

/** What the filter is to be, in Envoy. */
export interface FilterResource {
  /** Name of the filter in `http_filters`. */
  name: string;
  /** Path of envoy-filter.wasm on Envoy's machine. */
  filter: string;
  /** A bundle that `readBundle` accepts. */
  bundle: Uint8Array;
  /** Lines `name=value`: `decide=SECRET`, `clusters=transport` or `clusters=upstream`. */
  options: readonly string[];
  /** Tells this state from others in Envoy's statistics. */
  version: string;
}

const ENVOY = "type.googleapis.com/envoy";
const GOOGLE = "type.googleapis.com/google.protobuf";
const TYPED_CONFIG = `${ENVOY}.config.core.v3.TypedExtensionConfig`;
/** Of `failure_policy`: a VM that has trapped is made anew, and until then requests are answered with 503. */
const FAIL_RELOAD = 1;

/** The bytes of the file. The same state gives the same bytes. */
export function filterResource({ name, filter, bundle, options, version }: FilterResource): Uint8Array {
  const code = message(bytes(1, message(text(1, filter))));
  const vm = [
    text(1, "njet_kic"),
    text(2, "envoy.wasm.runtime.v8"),
    bytes(3, code),
    ...(options.length === 0 ? [] : [bytes(4, any(`${GOOGLE}.StringValue`, message(text(1, options.join("\n")))))]),
  ];
  const configuration = any(`${GOOGLE}.BytesValue`, message(bytes(1, packBundle(bundle))));
  // After a trap: anew after 100 ms, and more slowly where it happens again.
  const backoff = message(bytes(1, duration(100)), bytes(2, duration(10_000)));
  const plugin = message(
    text(1, "njet_kic"),
    text(2, "njet_kic"),
    bytes(3, message(...vm)),
    bytes(4, configuration),
    number(7, FAIL_RELOAD),
    bytes(8, message(bytes(1, backoff))),
  );
  const wasm = any(`${ENVOY}.extensions.filters.http.wasm.v3.Wasm`, message(bytes(1, plugin)));
  const extension = any(TYPED_CONFIG, message(text(1, name), bytes(2, wasm)));
  return message(text(1, version), bytes(2, extension), text(4, TYPED_CONFIG));
}

function any(typeUrl: string, value: Uint8Array): Uint8Array {
  return message(text(1, typeUrl), bytes(2, value));
}

function duration(milliseconds: number): Uint8Array {
  const seconds = Math.floor(milliseconds / 1000);
  return message(number(1, seconds), number(2, (milliseconds % 1000) * 1_000_000));
}

// Wire format of protobuf: a field is its number and kind as a varint, then a varint, or a length and so many bytes.

const LENGTH_DELIMITED = 2;

function varint(value: number): Uint8Array {
  const out: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Uint8Array.from([...out, rest]);
    out.push((rest % 128) | 128);
  }
}

/** 0 is the default, and left out. */
function number(field: number, value: number): Uint8Array {
  return value === 0 ? new Uint8Array() : message(varint(field * 8), varint(value));
}

function bytes(field: number, value: Uint8Array): Uint8Array {
  return message(varint(field * 8 + LENGTH_DELIMITED), varint(value.length), value);
}

function text(field: number, value: string): Uint8Array {
  return bytes(field, new TextEncoder().encode(value));
}

function message(...parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
