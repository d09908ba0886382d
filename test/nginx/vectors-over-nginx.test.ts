import { describe } from "vitest";
import { noNginx } from "./installation.js";
import { strictVectorsOver } from "./strict-vectors.js";

describe.skipIf(noNginx)("over NGINX, the strict vectors", () => strictVectorsOver());
