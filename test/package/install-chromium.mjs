// Chromium without a window, by Debian's packages unpacked into the cache folder. Prints how it is started, as JSON.
// Exit status: 0; 3 where it can't be had on this system; 1.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { libraryFolders, runScript, unpackPackages } from "../../deploy/debian/packages.mjs";

/** The program in a folder, and the environment that it needs there. */
function installation(folder) {
  return {
    binary: join(folder, "usr/lib/chromium/chromium-headless-shell"),
    env: { LD_LIBRARY_PATH: libraryFolders(folder).join(":") },
  };
}

await runScript(async (say) => {
  const folder = await unpackPackages({
    name: "chromium",
    packages: ["chromium-headless-shell"],
    check(unpacked) {
      const { binary, env } = installation(unpacked);
      execFileSync(binary, ["--version"], { env: { ...process.env, ...env }, stdio: "ignore" });
    },
    say,
  });
  return installation(folder);
});
