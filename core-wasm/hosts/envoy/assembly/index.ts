/**
 * njet-kic as an HTTP filter of Envoy: the callbacks of proxy-wasm, ABI 0.2.1, around the core. The plugin configuration is a
 * bundle (core-wasm/BUNDLE.md), the configuration of the VM are options (options.ts).
 */
import { act, CONTINUE, changeAnswer, PAUSE } from "./act";
import { sendAnswer, startAnswer } from "./answer";
import { decide } from "./decide";
import { timeNow } from "./host";
import { readOptions } from "./options";
import { addPlugin, configurePlugin, dropPlugin, findPlugin, P_CONTEXT, P_COUNTS_FAILURES, P_TABLE } from "./plugin";
import { answerQuestion, isQuestion } from "./question";
import { readRequest } from "./request";
import { take, takeBack } from "./scratch";
import { addStream, endStream, findStream, leavePlugin, S_PLUGIN, setTime } from "./stream";

/** Marks a module that speaks this version. */
export function proxy_abi_version_0_2_1(): void {}

/** Memory for what the host is about to hand in. It is the filter's until the callback ends. */
export function proxy_on_memory_allocate(size: u32): usize {
  return take(size);
}

/** A plugin (no parent), or a stream of one. */
export function proxy_on_context_create(id: u32, parent: u32): void {
  if (parent) addStream(id, findPlugin(parent));
  else if (!findPlugin(id)) addPlugin(id);
}

/** State of xorshift32, for splits and lots; never 0. */
let lot: u32 = 1;

function nextRandom(): u32 {
  lot ^= lot << 13;
  lot ^= lot >> 17;
  lot ^= lot << 5;
  return lot;
}

export function proxy_on_vm_start(_plugin: u32, size: u32): u32 {
  takeBack();
  let now = timeNow();
  lot = <u32>(now ^ (now >> 32)) * 0x9e3779b9;
  if (!lot) lot = 1;
  return readOptions(size) ? 1 : 0;
}

/** Takes a bundle. One that is refused leaves the plugin as it was; Envoy then keeps the configuration that it has. */
export function proxy_on_configure(id: u32, size: u32): u32 {
  takeBack();
  let plugin = findPlugin(id);
  return plugin && configurePlugin(plugin, size) ? 1 : 0;
}

export function proxy_on_request_headers(id: u32, _count: u32, _end: u32): u32 {
  takeBack();
  let stream = findStream(id);
  let plugin = pluginOf(stream);
  if (!plugin || !load<u32>(plugin, P_TABLE) || !readRequest()) return refuse(503);
  if (isQuestion()) {
    answerQuestion(plugin);
    return PAUSE;
  }
  let context: usize = load<u32>(plugin, P_CONTEXT);
  if (load<u32>(plugin, P_COUNTS_FAILURES)) setTime(context);
  if (decide(context, nextRandom()) < 0) return refuse(414);
  return act(stream, plugin);
}

/** The plugin of a stream; 0 if there is none. */
function pluginOf(stream: usize): usize {
  return stream ? <usize>load<u32>(stream, S_PLUGIN) : 0;
}

function refuse(status: u32): u32 {
  startAnswer();
  sendAnswer(status, 0, 0);
  return PAUSE;
}

export function proxy_on_response_headers(id: u32, _count: u32, _end: u32): u32 {
  let stream = findStream(id);
  if (!stream) return CONTINUE;
  takeBack();
  return changeAnswer(stream);
}

/** The end of a stream or of a plugin. */
export function proxy_on_delete(id: u32): void {
  let stream = findStream(id);
  if (stream) {
    endStream(id, stream);
    return;
  }
  let plugin = findPlugin(id);
  if (!plugin) return;
  leavePlugin(plugin);
  dropPlugin(plugin);
}
