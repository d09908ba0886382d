/** Has the core decide the request at hand. */
import { resume, route } from "../../../assembly/index";
import { E_MEMORY, NEED } from "../../../assembly/status";
import { X_INPUT } from "../../../assembly/table/context";
import { INPUT_SIZE } from "./plugin";
import { fillIn, host, hostLength, https, target, targetLength } from "./request";

/** 0: decided; below zero: host and target are too long for the core. */
export function decide(context: usize, random: u32): i32 {
  if (<u64>hostLength + <u64>targetLength > INPUT_SIZE - 4) return E_MEMORY;
  let input: usize = load<u32>(context, X_INPUT);
  memory.copy(input, host, hostLength);
  memory.copy(input + ((hostLength + 3) & ~3), target, targetLength);
  let status = route(context, hostLength, targetLength, https ? 1 : 0, random);
  while (status == NEED) {
    fillIn(context);
    status = resume(context);
  }
  return status;
}
