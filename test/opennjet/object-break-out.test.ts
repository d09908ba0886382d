import { afterEach, describe } from "vitest";
import { runCleanups } from "../support/harness.js";
import { nothingBreaksOut } from "./object-break-out.js";
import { carriedDouble } from "./carried-double.js";

afterEach(runCleanups);

describe("over the double of OpenNJet, no text gets out of its place:", () => nothingBreaksOut(() => carriedDouble()));
