import { describe } from "vitest";
import { testErrorPages } from "../proxy/error-page-suite.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";

cleanUpAfterEach();

describe.skipIf(noNginx)("error pages on NGINX", () => testErrorPages((steps) => RequestNginx.start(steps)));
