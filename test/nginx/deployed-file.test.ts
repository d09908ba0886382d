import { describe, expect, it } from "vitest";
import { cleanUpAfterEach } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { actionHost } from "../support/plans.js";
import { answer } from "../support/rules.js";
import { deployedText } from "./deployed-file.js";
import { installation, noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";

cleanUpAfterEach();

const HOST = "shop.example.com";

describe.skipIf(noNginx)("deploy/nginx/nginx.conf", () => {
  it("is what an NGINX starts and serves with, once the places are its own", async () => {
    const found = await installation();
    const luaPaths = found.luaPath.split(";");
    const places: [string, string][] = [
      ...found.modules.map((path): [string, string] => [`/usr/lib/nginx/modules/${path.split("/").at(-1)}`, path]),
      ["/usr/share/lua/5.1/?.lua", luaPaths[0]],
      ["/usr/share/lua/5.1/?/init.lua", luaPaths[1]],
      ["/usr/lib/x86_64-linux-gnu/lua/5.1/?.so", found.luaCPath],
    ];
    const nginx = await RequestNginx.start([actionHost(HOST, answer("deployed"))], {
      flavour: {
        installation: async () => found,
        configuration: (options) => deployedText("nginx/nginx.conf", options, places),
      },
    });
    expect((await ask(nginx.http, { host: HOST })).body).toBe("deployed");
    expect((await ask(nginx.https, { host: HOST, tls: true })).body).toBe("deployed");
  });
});
