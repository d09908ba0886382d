import { describe } from "vitest";
import { strictVectorsOver } from "../nginx/strict-vectors.js";
import { noOpenNjet, OPENNJET } from "./real-installation.js";

describe.skipIf(noOpenNjet)("over OpenNJet with the core inside, the strict vectors", () =>
  strictVectorsOver(OPENNJET),
);
