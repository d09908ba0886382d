import { afterEach, describe } from "vitest";
import { runCleanups } from "../support/harness.js";
import { carriedDouble } from "./carried-double.js";
import { nothingBreaksOut } from "./object-break-out.js";

afterEach(runCleanups);

describe("over the double of OpenNJet, no text gets out of its place:", () => nothingBreaksOut(() => carriedDouble()));
