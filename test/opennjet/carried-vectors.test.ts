import { describe } from "vitest";
import { carriedDouble } from "./carried-double.js";
import { strictVectorsOverLocations } from "./carried-vectors.js";

describe("over the carrier locations, the strict vectors", () =>
  strictVectorsOverLocations((standIns) => carriedDouble({ connect: (peer) => standIns.toLoopback(peer) })));
