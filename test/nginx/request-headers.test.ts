import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCleanups } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { actionHost } from "../support/plans.js";
import { answer, cookie, header } from "../support/rules.js";
import { noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";

const HOST = "shop.example.com";

describe.skipIf(noNginx)("what the core learns of a request's headers in NGINX", () => {
  let nginx: RequestNginx;

  beforeAll(async () => {
    const told = answer("tenant <", header("x-tenant"), "> cookie <", cookie("b"), ">");
    nginx = await RequestNginx.start([actionHost(HOST, told)]);
  }, 60_000);
  afterAll(runCleanups);

  async function told(headers: Record<string, string | string[]>): Promise<string> {
    const { status, body } = await ask(nginx.http, { host: HOST, headers });
    expect(status, body).toBe(200);
    return body;
  }

  it("is the value, whatever the case of the name", async () => {
    expect(await told({ "X-TENANT": "a b" })).toBe("tenant <a b> cookie <>");
    expect(await told({ "x-tenant": "a" })).toBe("tenant <a> cookie <>");
  });

  it("is nothing where there is none, and no other header takes its place", async () => {
    expect(await told({})).toBe("tenant <> cookie <>");
    expect(await told({ "X-Tenant": "" })).toBe("tenant <> cookie <>");
    expect(await told({ "X-Tenant2": "a", "Y-Tenant": "b", "X-Tenan": "c" })).toBe("tenant <> cookie <>");
  });

  it("is all values of one that was sent several times, in their order", async () => {
    expect(await told({ "X-Tenant": ["a", "b", "c"] })).toBe("tenant <a, b, c> cookie <>");
    expect(await told({ Cookie: ["a=1", "b=2"] })).toBe("tenant <> cookie <2>");
  });

  it.each([100, 126, 127, 128, 129, 300])("is the same among %i others", async (count) => {
    const others = Object.fromEntries(Array.from({ length: count }, (_, i) => [`X-Other-${i}`, `${i}`]));
    expect(await told({ ...others, "X-Tenant": "last", Cookie: "b=3" })).toBe("tenant <last> cookie <3>");
    expect(await told({ "X-Tenant": ["first", "second"], ...others })).toBe("tenant <first, second> cookie <>");
  });
});
