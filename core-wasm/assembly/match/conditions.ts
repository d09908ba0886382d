/** Conditions, with the meaning of an NGINX map key: text without regard to case, regexes, `!`, and absent as empty. */
import {
  C_NAME,
  C_NAME_LENGTH,
  C_NEGATED,
  C_OPERAND,
  C_OPERAND_LENGTH,
  C_TEST,
  C_VARIABLE,
  CONDITION_SIZE,
  M_CONDITIONS,
  S_COOKIE,
  SOURCE_ARGUMENT,
  SOURCE_COOKIE,
  SOURCE_HEADER,
  TEST_EMPTY,
  TEST_EQUALS,
} from "../image/layout";
import { sameFolded } from "../memory/bytes";
import { regexTest } from "../regex/regex";
import { argumentValue, cookieValue, slotValue, variableValue } from "../request/values";
import { X_SCRATCH, X_VALUE, X_VALUE_LENGTH } from "../table/context";
import { TRACE_CONDITION, traceValue, tracing } from "./trace";

function readSource(ctx: usize, image: usize, condition: usize): void {
  let source: u32 = load<u8>(condition);
  let name = load<u32>(condition, C_NAME);
  let length = load<u32>(condition, C_NAME_LENGTH);
  if (source == SOURCE_HEADER) slotValue(ctx, name);
  else if (source == SOURCE_COOKIE) cookieValue(ctx, load<u32>(image, S_COOKIE), image + name, length);
  else if (source == SOURCE_ARGUMENT) argumentValue(ctx, image + name, length);
  else variableValue(ctx, load<u8>(condition, C_VARIABLE), 0);
}

function holds(ctx: usize, image: usize, condition: usize): bool {
  readSource(ctx, image, condition);
  let value: usize = load<u32>(ctx, X_VALUE);
  let length = load<u32>(ctx, X_VALUE_LENGTH);
  let operand = image + load<u32>(condition, C_OPERAND);
  let test: u32 = load<u8>(condition, C_TEST);
  let result: bool;
  if (test == TEST_EQUALS) {
    result = load<u32>(condition, C_OPERAND_LENGTH) == length && sameFolded(value, operand, length);
  } else if (test == TEST_EMPTY) {
    result = length == 0;
  } else {
    result = regexTest(operand, value, length, <usize>load<u32>(ctx, X_SCRATCH));
  }
  result = result != (load<u8>(condition, C_NEGATED) != 0);
  if (tracing(ctx)) traceValue(ctx, TRACE_CONDITION, <u32>condition, result);
  return result;
}

/** True if all conditions of the match at `match` hold. */
export function allHold(ctx: usize, image: usize, match: usize): bool {
  let count = load<u32>(match);
  let condition = image + load<u32>(match, M_CONDITIONS);
  for (let i: u32 = 0; i < count; i++, condition += CONDITION_SIZE) {
    if (!holds(ctx, image, condition)) return false;
  }
  return true;
}
