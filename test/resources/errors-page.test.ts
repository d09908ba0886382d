import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { ERROR_SECTIONS } from "../../controller/errors.js";

const page = readFileSync(new URL("../../ERRORS.md", import.meta.url), "utf8");

it("ERRORS.md lists every code with its meaning and remedy, and no other code", () => {
  const rows = page
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) => line.split("|").map((cell) => cell.trim()));
  const expected = ERROR_SECTIONS.flatMap(({ entries }) =>
    Object.entries(entries).map(([code, { meaning, remedy }]) => ["", `\`${code}\``, meaning, remedy, ""]),
  );
  expect(rows).toEqual(expected);
});

it("every code is listed once", () => {
  const codes = ERROR_SECTIONS.flatMap(({ entries }) => Object.keys(entries));
  expect(new Set(codes).size).toBe(codes.length);
});
