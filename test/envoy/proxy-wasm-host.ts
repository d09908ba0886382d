/** A small host of proxy-wasm (ABI 0.2.1): runs a filter as Envoy does, with header maps that a test can look at. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PACKAGE_ROOT } from "../../controller/proxies/nginx/parts.js";
import { decodeHeaderMap, encodeHeaderMap } from "./header-map.js";

/** Where the build puts the filter. */
export const FILTER = join(PACKAGE_ROOT ?? "", "dist/envoy-filter.wasm");

type Pair = [name: string, value: string];

/** Statuses of host functions. */
const OK = 0;
const NOT_FOUND = 1;
const BAD_ARGUMENT = 2;

const REQUEST = 0;
const RESPONSE = 2;
const VM_CONFIGURATION = 6;
const PLUGIN_CONFIGURATION = 7;
const CONTINUE = 0;

/** An answer of the filter itself. */
export interface LocalAnswer {
  status: number;
  headers: Pair[];
  body: string;
}

interface FilterExports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  proxy_on_memory_allocate(size: number): number;
  proxy_on_context_create(id: number, parent: number): void;
  proxy_on_vm_start(plugin: number, size: number): number;
  proxy_on_configure(plugin: number, size: number): number;
  proxy_on_request_headers(id: number, count: number, end: number): number;
  proxy_on_response_headers(id: number, count: number, end: number): number;
  proxy_on_delete(id: number): void;
}

/** What a test says of a connection and of the host. */
export interface HostOptions {
  /** Options of the filter: the configuration of the VM. */
  options?: string;
  /** Milliseconds since the epoch. */
  now?: () => number;
  /** False for a host without Envoy's own functions. */
  isEnvoy?: boolean;
}

/** A request under way; header maps are as the filter has left them. Names are in lower case. */
export interface Stream {
  id: number;
  request: Pair[];
  response: Pair[];
  /** What the filter has answered, instead of an upstream. */
  answer: LocalAnswer | undefined;
  /** Where an ORIGINAL_DST cluster would send it. */
  destination: string | undefined;
}

/** One VM of the filter. */
export class ProxyWasmHost {
  readonly logged: string[] = [];
  properties: Record<string, string> = {};
  readonly #exports: FilterExports;
  readonly #now: () => number;
  readonly #isEnvoy: boolean;
  #configuration = new Uint8Array();
  readonly #options: Uint8Array;
  #ids = 0;
  #stream: Stream | undefined;

  constructor({ options = "", now = Date.now, isEnvoy = true }: HostOptions = {}, module = readFileSync(FILTER)) {
    this.#options = Buffer.from(options, "latin1");
    this.#now = now;
    this.#isEnvoy = isEnvoy;
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(module), { env: this.#functions() });
    this.#exports = exports as unknown as FilterExports;
    this.#exports._initialize();
  }

  /** Bytes of memory that the filter has. */
  get memorySize(): number {
    return this.#exports.memory.buffer.byteLength;
  }

  /** A new plugin with this bundle; undefined if the filter refuses the bundle or its options. */
  configure(bundle: Uint8Array): number | undefined {
    const id = ++this.#ids;
    this.#exports.proxy_on_context_create(id, 0);
    if (!this.#exports.proxy_on_vm_start(id, this.#options.length)) return undefined;
    return this.reconfigure(id, bundle) ? id : undefined;
  }

  /** Gives a plugin another bundle. */
  reconfigure(plugin: number, bundle: Uint8Array): boolean {
    this.#configuration = Uint8Array.from(bundle);
    return this.#exports.proxy_on_configure(plugin, bundle.length) === 1;
  }

  /** The head of a request, with its pseudo headers, through the filter. */
  request(plugin: number, headers: readonly Pair[]): Stream {
    const stream: Stream = {
      id: ++this.#ids,
      request: headers.map(([name, value]) => [name.toLowerCase(), value]),
      ...{ response: [], answer: undefined, destination: undefined },
    };
    this.#stream = stream;
    this.#exports.proxy_on_context_create(stream.id, plugin);
    const goesOn = this.#exports.proxy_on_request_headers(stream.id, headers.length, 1) === CONTINUE;
    if (goesOn === (stream.answer !== undefined)) throw new Error("an answer is sent where a request does not go on");
    return stream;
  }

  /** The head of the answer to a request through the filter, `:status` included. */
  respond(stream: Stream, headers: readonly Pair[]): void {
    this.#stream = stream;
    stream.response = headers.map(([name, value]) => [name.toLowerCase(), value]);
    const goesOn = this.#exports.proxy_on_response_headers(stream.id, headers.length, 1) === CONTINUE;
    if (goesOn === (stream.answer !== undefined)) throw new Error("an answer is sent where a response does not go on");
  }

  /** The end of a request or of a plugin. */
  end(id: number): void {
    this.#exports.proxy_on_delete(id);
  }

  #bytes(at: number, length: number): Buffer {
    return Buffer.from(this.#exports.memory.buffer, at >>> 0, length >>> 0);
  }

  #text(at: number, length: number): string {
    return this.#bytes(at, length).toString("latin1");
  }

  /** Puts bytes into memory that the filter gives, and their place into two words. */
  #give(bytes: Uint8Array, data: number, size: number): number {
    const at = bytes.length === 0 ? 0 : this.#exports.proxy_on_memory_allocate(bytes.length);
    if (bytes.length > 0 && at === 0) throw new Error("the filter has no memory");
    Buffer.from(this.#exports.memory.buffer).set(bytes, at);
    const view = new DataView(this.#exports.memory.buffer);
    view.setUint32(data, at, true);
    view.setUint32(size, bytes.length, true);
    return OK;
  }

  #map(map: number): Pair[] {
    if (this.#stream === undefined || (map !== REQUEST && map !== RESPONSE)) throw new Error(`no map ${map} here`);
    return map === REQUEST ? this.#stream.request : this.#stream.response;
  }

  #without(map: number, name: string): Pair[] {
    const pairs = this.#map(map);
    pairs.splice(0, pairs.length, ...pairs.filter(([other]) => other !== name));
    return pairs;
  }

  #functions(): Record<string, (...args: number[]) => number> {
    return {
      proxy_log: (_level, text, size) => {
        this.logged.push(this.#text(text, size));
        return OK;
      },
      proxy_get_current_time_nanoseconds: (at) => {
        new DataView(this.#exports.memory.buffer).setBigUint64(at, BigInt(this.#now()) * 1_000_000n, true);
        return OK;
      },
      proxy_get_buffer_bytes: (buffer, start, most, data, size) => {
        if (buffer !== VM_CONFIGURATION && buffer !== PLUGIN_CONFIGURATION) return BAD_ARGUMENT;
        const bytes = buffer === VM_CONFIGURATION ? this.#options : this.#configuration;
        return this.#give(bytes.subarray(start, start + most), data, size);
      },
      proxy_get_property: (path, length, data, size) => {
        const value = this.properties[this.#text(path, length).replaceAll("\0", ".")];
        return value === undefined ? NOT_FOUND : this.#give(Buffer.from(value, "latin1"), data, size);
      },
      proxy_get_header_map_pairs: (map, data, size) => this.#give(encodeHeaderMap(this.#map(map)), data, size),
      proxy_get_header_map_value: (map, name, length, data, size) => {
        const key = this.#text(name, length);
        const pair = this.#map(map).find(([other]) => other === key);
        return pair === undefined ? NOT_FOUND : this.#give(Buffer.from(pair[1], "latin1"), data, size);
      },
      proxy_add_header_map_value: (map, name, nameLength, value, length) => {
        this.#map(map).push([this.#text(name, nameLength), this.#text(value, length)]);
        return OK;
      },
      proxy_replace_header_map_value: (map, name, nameLength, value, length) => {
        const key = this.#text(name, nameLength);
        this.#without(map, key).push([key, this.#text(value, length)]);
        return OK;
      },
      proxy_remove_header_map_value: (map, name, length) => {
        this.#without(map, this.#text(name, length));
        return OK;
      },
      proxy_call_foreign_function: (name, nameLength, argument, length) => {
        const stream = this.#stream;
        if (!this.#isEnvoy || this.#text(name, nameLength) !== "set_envoy_filter_state" || !stream) return NOT_FOUND;
        const [key, value] = textFields(this.#bytes(argument, length));
        if (key !== "envoy.network.transport_socket.original_dst_address") return BAD_ARGUMENT;
        stream.destination = value;
        return OK;
      },
      proxy_send_local_response: (status, _details, _length, body, bodyLength, headers, headersLength) => {
        if (this.#stream === undefined) return BAD_ARGUMENT;
        this.#stream.answer = {
          status,
          headers: decodeHeaderMap(this.#bytes(headers, headersLength)),
          body: this.#text(body, bodyLength),
        };
        return OK;
      },
    };
  }
}

/** The texts of a message of protobuf with two short text fields, 1 and 2. */
function textFields(message: Buffer): [string, string] {
  const first = message[1];
  const second = message[3 + first];
  if (message[0] !== 10 || message[2 + first] !== 18 || 4 + first + second !== message.length) {
    throw new Error(`no such message: ${message.toString("hex")}`);
  }
  return [message.toString("latin1", 2, 2 + first), message.toString("latin1", 4 + first)];
}
