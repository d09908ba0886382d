import { type Expected, readAnswer, requireDone } from "./answer.js";
import { ParameterError } from "./errors.js";
import { BASE_PATH } from "./paths.js";
import type { Reader } from "./shape.js";
import { type Answer, type Call, failed, type Transport } from "./transport.js";

/** Calls of one control server, as the parts of `OpenNjetApi` make them; paths are below the base. */
export class ControlServer {
  constructor(private readonly transport: Transport) {}

  /** The answer, whatever it says. */
  ask(call: Call): Promise<Answer> {
    return this.transport.send(below(call));
  }

  /** Throws unless it was done. */
  async change(call: Call, expected?: Expected): Promise<void> {
    requireDone(await this.ask(call), expected);
  }

  /** The value of the answer. */
  async read<T>(call: Call, reader: Reader<T>, expected?: Expected): Promise<T> {
    return readAnswer(await this.ask(call), reader, expected);
  }
}

/**
 * A name as a segment of a path. OpenNJet decodes paths before it splits them, so that a slash or dots can't be sent;
 * `call` is for the error.
 */
export function segment(name: string, call: Call): string {
  if (/^[^/\u0000-\u001f\u007f]{1,255}$/u.test(name) && name !== "." && name !== "..") return encodeURIComponent(name);
  throw new ParameterError("a name has characters that a path can't carry, or none", failed(below(call), 0));
}

export function below(call: Call): Call {
  return { ...call, path: `${BASE_PATH}${call.path}` };
}
