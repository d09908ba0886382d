import { defineConfig } from "vitest/config";

// What takes minutes to build, and is therefore not part of `npm test`.
export default defineConfig({
  test: {
    include: ["test/**/*.extended.ts"],
    exclude: ["node_modules/**", "dist/**"],
    testTimeout: 120_000,
    hookTimeout: 3_600_000,
    maxWorkers: 1,
  },
});
