import { errorOfStatus, isOk } from "./answer.js";
import { below, type ControlServer } from "./control-server.js";
import { ParameterError } from "./errors.js";
import { PATHS } from "./paths.js";
import { type Call, failed } from "./transport.js";

/** Number of workers; setting it makes the master start or end some. */
export const WORKER_COUNT_KEY = "__master_worker_count";

/** A key becomes a part of an MQTT topic, and queries are not decoded. */
const KEY = /^[\w.-]{1,200}$/;

/** `/v1/kv`: the store of the control server, which also tells the data plane of each value. */
export class KeyValue {
  constructor(private readonly control: ControlServer) {}

  /** A value; undefined if there is none. Throws ParameterError for a key of other characters than letters, digits and `_.-`. */
  async get(key: string): Promise<string | undefined> {
    const answer = await this.control.ask(callOf("GET", key));
    if (isOk(answer)) return answer.text;
    if (answer.status === 404) return undefined;
    throw errorOfStatus(answer);
  }

  /** Sets a value. It is not shown in errors. */
  async set(key: string, value: string): Promise<void> {
    callOf("POST", key);
    const call: Call = { method: "POST", path: PATHS.keyValue, body: { key, value }, secrets: [value] };
    const answer = await this.control.ask(call);
    if (!isOk(answer)) throw errorOfStatus(answer);
  }

  /** Removes a value; false if there was none. */
  async remove(key: string): Promise<boolean> {
    const answer = await this.control.ask(callOf("DELETE", key));
    if (isOk(answer)) return true;
    if (answer.status === 404) return false;
    throw errorOfStatus(answer);
  }
}

function callOf(method: "GET" | "POST" | "DELETE", key: string): Call {
  const call: Call = { method, path: PATHS.keyValue, query: `key=${key}` };
  if (KEY.test(key)) return call;
  throw new ParameterError("a key has 1 to 200 letters, digits or _.- only", failed(below(call), 0));
}
