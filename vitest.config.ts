import { defineConfig } from "vitest/config";

// Two cores are what a test machine has; suites that start servers must not starve each other.
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["node_modules/**", "dist/**"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
