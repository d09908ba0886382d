import {
  FACT_ADDRESS,
  FACT_METHOD,
  FACT_PORT,
  FACT_PROTOCOL,
  FACTS,
  MAX_SLOTS,
  VAR_HTTP2,
  VAR_REMOTE_ADDR,
  VAR_REMOTE_PORT,
  VAR_REQUEST,
  VAR_REQUEST_METHOD,
  VAR_SERVER_PROTOCOL,
} from "../../assembly/image/layout.js";
import { CoreError } from "../errors.js";
import type { VariableName } from "../source.js";
import { ImageWriter } from "./image-writer.js";
import { VARIABLES } from "./numbers.js";
import { TextList, TextStore } from "./text-list.js";

/** The header that cookies are read from. */
const COOKIE = "cookie";

/** Facts of the connection that a variable reads, beyond host, target and scheme. */
const FACTS_OF = new Map<number, readonly number[]>([
  [VAR_REMOTE_ADDR, [FACT_ADDRESS]],
  [VAR_REMOTE_PORT, [FACT_PORT]],
  [VAR_REQUEST_METHOD, [FACT_METHOD]],
  [VAR_SERVER_PROTOCOL, [FACT_PROTOCOL]],
  [VAR_HTTP2, [FACT_PROTOCOL]],
  [VAR_REQUEST, [FACT_METHOD, FACT_PROTOCOL]],
]);
const NO_FACTS: readonly number[] = [];

/**
 * One image in the making: its bytes, the headers that it names, and what the rule at hand looks at. Errors name what is
 * being compiled. Used again and again.
 */
export class Compilation {
  readonly out = new ImageWriter();
  readonly store = new TextStore();
  readonly headers = new TextList(this.store);
  /** The path at hand, as its object spells it; shown in errors. */
  path: string | undefined;
  /** Marks of the value slots that the rule at hand looks at. */
  readonly #needed = new Uint8Array(MAX_SLOTS);
  #neededCount = 0;
  #name = "";

  /** `kind` and the name that `begin` is given say in errors what is compiled. It may name at most so many headers. */
  constructor(
    readonly kind: string,
    readonly mostHeaders: number,
  ) {}

  begin(name: string): void {
    this.out.reset();
    this.store.renew();
    this.headers.reset();
    this.clearNeed();
    this.path = undefined;
    this.#name = name;
  }

  /** What can't be compiled. */
  invalid(reason: string): CoreError {
    return new CoreError("CORE_SOURCE_INVALID", this.#told(reason));
  }

  /** What exceeds a limit of the format. */
  beyond(reason: string): CoreError {
    return new CoreError("CORE_LIMIT", this.#told(reason));
  }

  #told(reason: string): string {
    const path = this.path === undefined ? "" : `, path ${JSON.stringify(this.path)}`;
    return `${this.kind} ${JSON.stringify(this.#name)}${path}: ${reason}`;
  }

  /** The value slot of a header; the rule at hand looks at it. */
  useHeader(name: string): number {
    if (name === "") throw this.invalid("a header without a name");
    const index = this.headers.add(name.toLowerCase());
    if (index >= this.mostHeaders) throw this.beyond(`more than ${this.mostHeaders} different headers`);
    this.#need(FACTS + index);
    return FACTS + index;
  }

  /** The rule at hand looks at cookies. */
  useCookies(): void {
    this.useHeader(COOKIE);
  }

  /** The number of a variable; the rule at hand looks at it. */
  useVariable(name: VariableName): number {
    const variable = VARIABLES.get(name);
    if (variable === undefined) throw this.invalid(`there is no variable ${JSON.stringify(name)}`);
    for (const fact of FACTS_OF.get(variable) ?? NO_FACTS) this.#need(fact);
    return variable;
  }

  /** The value slot of the header that carries the cookies; 0 if the image does not name it. */
  get cookieSlot(): number {
    if (this.headers.count === 0) return 0;
    const index = this.headers.indexOf(COOKIE);
    return index < 0 ? 0 : FACTS + index;
  }

  #need(slot: number): void {
    if (this.#needed[slot]) return;
    this.#needed[slot] = 1;
    this.#neededCount++;
  }

  /** Forgets what the rule at hand looks at. */
  clearNeed(): void {
    if (this.#neededCount > 0) this.#needed.fill(0);
    this.#neededCount = 0;
  }

  /** Writes the need list of the rule at hand; 0 if it looks at nothing. */
  putNeed(): number {
    if (this.#neededCount === 0) return 0;
    const { out } = this;
    const offset = out.length;
    out.put(this.#neededCount);
    for (let slot = 0; slot < MAX_SLOTS; slot++) if (this.#needed[slot]) out.put(slot);
    return offset;
  }
}
