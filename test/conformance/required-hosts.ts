/**
 * Keys of the hosts that have to run: `setting`, the value of NJET_KIC_REQUIRE_HOSTS, has them with commas between, or `all`. Nothing
 * is required without it, so that the tests pass on a machine that lacks a tool chain. Throws for a key that no host has.
 */
export function requiredHosts(setting: string | undefined, keys: readonly string[]): ReadonlySet<string> {
  if (setting === "all") return new Set(keys);
  const required = (setting ?? "").split(",").filter((key) => key !== "");
  const unknown = required.filter((key) => !keys.includes(key));
  if (unknown.length > 0) {
    throw new Error(`NJET_KIC_REQUIRE_HOSTS: no host is called ${unknown.join()}; there are ${keys.join()}`);
  }
  return new Set(required);
}
