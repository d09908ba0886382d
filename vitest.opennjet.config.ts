import { defineConfig } from "vitest/config";

/** Tests of requests that are written for NGINX, and hold for OpenNJet with the core inside as well. */
const REQUESTS = [
  ...[
    "bodies",
    "counters",
    "error-pages",
    "forwarding",
    "grpc",
    "hostile-peers",
    "lenient-parsing",
    "queue",
    "refusals",
  ],
  ...["sessions", "tls", "tries", "upgrade"],
];

// A real OpenNJet, the one that NJET_PREFIX names; without it every test is skipped, and the reason printed.
export default defineConfig({
  test: {
    include: ["test/opennjet/real-*.test.ts", ...REQUESTS.map((name) => `test/nginx/${name}.test.ts`)],
    exclude: ["node_modules/**", "dist/**"],
    env: { NJET_KIC_TEST_SERVER: "opennjet" },
    testTimeout: 120_000,
    hookTimeout: 600_000,
    maxWorkers: 1,
  },
});
