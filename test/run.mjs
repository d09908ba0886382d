// Runs every suite of the project and closes with one line over all of them. Arguments are passed on to vitest.
// With --extended: the suites that take minutes to build or need large downloads, instead of all others.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const node = process.execPath;
const extended = process.argv[2] === "--extended";
const args = process.argv.slice(extended ? 3 : 2);
const total = { passed: 0, failed: 0, skipped: 0 };

function run(args) {
  return spawnSync(node, args, { cwd: root, stdio: "inherit" }).status === 0;
}

/** A check that is no vitest suite counts as one test. */
function check(name, args) {
  const passed = run(args);
  console.log(`${passed ? "ok" : "FAILED"}: ${name}`);
  total[passed ? "passed" : "failed"] += 1;
}

function vitest(args) {
  const folder = mkdtempSync(join(tmpdir(), "njet-kic-test-"));
  const report = join(folder, "report.json");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const passed = run([join("node_modules", "vitest", "vitest.mjs"), "run", ...reporters, ...args]);
  try {
    const result = JSON.parse(readFileSync(report, "utf8"));
    total.passed += result.numPassedTests;
    total.failed += result.numFailedTests;
    total.skipped += result.numPendingTests + result.numTodoTests;
    // A file that can't even be loaded has no test that could fail.
    if (!passed && result.numFailedTests === 0) total.failed += Math.max(1, result.numFailedTestSuites);
  } catch (error) {
    console.error(`no report of the tests: ${error.message}`);
    total.failed += 1;
  }
  rmSync(folder, { recursive: true, force: true });
}

// The API server that some suites need is built once for each version, in the background: it takes minutes. Without Go
// (status 3) these suites are skipped; the reason has been printed.
function buildCluster() {
  const cluster = spawn(node, [join("test", "real", "kube", "build.mjs")], {
    cwd: root,
    stdio: ["ignore", "ignore", 2],
  });
  return new Promise((resolve) => {
    cluster.on("exit", (status) => resolve(status === 0 || status === 3));
  });
}
const clusterBuilt = extended ? true : buildCluster();

// The build type-checks every file, tests included.
check("build and type check", ["build.mjs"]);
if (total.failed === 0) {
  if (!extended && args.length === 0) {
    check("format and lint", [join("node_modules", "@biomejs", "biome", "bin", "biome"), "check", "."]);
  }
  if (!(await clusterBuilt)) check("build of the Kubernetes API server", ["--eval", "process.exit(1)"]);
  vitest(extended ? ["--config", "vitest.extended.config.ts", ...args] : args);
}
if (total.passed + total.failed + total.skipped === 0) total.failed = 1;
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exit(total.failed === 0 ? 0 : 1);
