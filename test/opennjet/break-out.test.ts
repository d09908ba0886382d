import { describe } from "vitest";
import { breakOutTests } from "./break-out.js";
import { carriedDouble } from "./carried-double.js";

describe("over a double of OpenNJet", () => breakOutTests(() => carriedDouble()));
