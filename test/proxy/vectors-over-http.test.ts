import { afterAll, describe } from "vitest";
import { cleanUpAfterEach } from "../support/harness.js";
import { serveEmbedded } from "./vector-embedded.js";
import { StandIns } from "./vector-peers.js";
import { testVectorsOverHttp } from "./vector-suite.js";

const standIns = new StandIns();
afterAll(() => standIns.close());
cleanUpAfterEach();

describe("over HTTP, the strict vectors", () => {
  testVectorsOverHttp((vector) => serveEmbedded(vector, standIns));
});
