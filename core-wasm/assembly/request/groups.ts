/** Groups of the regex of the route at hand, found when the first of them is written: most decisions need none. */
import { NONE, R_REGEX, ROUTE_REGEX, ROUTE_SIZE, S_ROUTES } from "../image/layout";
import { regexCaptures } from "../regex/regex";
import { D_ROUTE, D_SHARD, X_CAPTURED, X_GROUPS, X_PATH, X_PATH_LENGTH, X_SCRATCH } from "../table/context";

/** Values of X_CAPTURED: not looked for yet, found, or there are none. */
const UNKNOWN: u32 = 0;
const FOUND: u32 = 1;
const ABSENT: u32 = 2;

function findGroups(ctx: usize): bool {
  let image: usize = load<u32>(ctx, D_SHARD);
  let index = load<u32>(ctx, D_ROUTE);
  if (!image || index == NONE) return false;
  let route = image + load<u32>(image, S_ROUTES) + index * ROUTE_SIZE;
  if (load<u8>(route) != <u8>ROUTE_REGEX) return false;
  return regexCaptures(
    image + load<u32>(route, R_REGEX),
    <usize>load<u32>(ctx, X_PATH),
    load<u32>(ctx, X_PATH_LENGTH),
    <usize>load<u32>(ctx, X_SCRATCH),
    ctx + X_GROUPS,
  );
}

/** True if X_GROUPS holds the groups of the route that decides. */
export function hasGroups(ctx: usize): bool {
  if (load<u32>(ctx, X_CAPTURED) == UNKNOWN) store<u32>(ctx, findGroups(ctx) ? FOUND : ABSENT, X_CAPTURED);
  return load<u32>(ctx, X_CAPTURED) == FOUND;
}
