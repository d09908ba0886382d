import { describe } from "vitest";
import { cleanUpAfterEach, startProxy } from "../support/harness.js";
import { testErrorPages } from "./error-page-suite.js";

cleanUpAfterEach();

describe("error pages", () => testErrorPages((steps) => startProxy(steps)));
