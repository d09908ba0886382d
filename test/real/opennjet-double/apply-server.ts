import { ConfigurationError, type Directive, parseConfiguration } from "./configuration-text.js";
import { DONE, type Message, type Result, refused } from "./messages.js";
import type { PlaneServer, PlaneState } from "./plane-state.js";

type ServerMessage = Extract<Message, { about: "server" }>;

/** What a dynamic server can't have, and what it can besides what is known of locations. */
const NOT_DYNAMIC = new Set(["location", "zone", "listen"]);
const IN_SERVER = new Set([
  "add_header",
  "client_max_body_size",
  "return",
  "rewrite",
  "server_name",
  "set",
  "ssl_certificate",
  "ssl_certificate_key",
  "ssl_ciphers",
  "ssl_protocols",
]);

/** `njt_http_dyn_server_module.c`. */
export function applyServer(state: PlaneState, message: ServerMessage): Result {
  return message.type === "add" ? add(state, message) : remove(state, message);
}

function add(state: PlaneState, message: Extract<ServerMessage, { type: "add" }>): Result {
  const { addr_port, server_name, server_body = "", listen_option = "" } = message;
  if (state.serverOf(addr_port, server_name)) {
    return refused(5, `error:[${addr_port}] server[${server_name}] exist!`);
  }
  const others = state.servers.filter(({ listens }) => listens.includes(addr_port));
  if (others.length > 0 && listen_option !== "" && listen_option !== "ssl") {
    return refused(4, "dyn server listen option only works for unlistened port");
  }
  const isTls = others.length > 0 ? others.some(({ tls }) => tls) : listen_option.split(" ").includes("ssl");
  const read = directivesOf(state, server_name, server_body.trim());
  if ("code" in read) return read;
  const server: PlaneServer = {
    listens: [addr_port],
    names: [server_name],
    isStatic: false,
    hadCertificates: new Set(),
    directives: read.directives,
    locations: [],
  };
  if (isTls) {
    const certificate = argumentOf(read.directives, "ssl_certificate");
    const certificateKey = argumentOf(read.directives, "ssl_certificate_key");
    if (!certificate || !certificateKey) return refused(4, "add server error:no ssl_certificate!");
    server.tls = { cert_type: "rsa", certificate, certificateKey };
  }
  state.servers.push(server);
  return DONE;
}

function directivesOf(state: PlaneState, name: string, body: string): { directives: Directive[] } | Result {
  const file = `${state.prefix}/logs/4_0_add_server.txt`;
  const end = body === "" || /[;}]$/.test(body) ? "" : "; ";
  try {
    const [server] = parseConfiguration(`server {\nlisten address;\nserver_name ${name};\n${body}${end}\n}\n`);
    const directives = (server.block ?? []).slice(2);
    for (const directive of directives) {
      if (NOT_DYNAMIC.has(directive.name)) {
        throw new ConfigurationError(`"${directive.name}" directive no support of dynamic!`, directive.line);
      }
      if (!IN_SERVER.has(directive.name)) {
        throw new ConfigurationError(`unknown directive "${directive.name}"`, directive.line);
      }
    }
    return { directives };
  } catch (error) {
    if (error instanceof ConfigurationError) return refused(4, `${error.message} in ${file}:${error.line}`);
    throw error;
  }
}

function argumentOf(directives: readonly Directive[], name: string): string | undefined {
  return directives.find((one) => one.name === name)?.args[0];
}

function remove(state: PlaneState, { addr_port, server_name }: Extract<ServerMessage, { type: "del" }>): Result {
  const server = state.serverOf(addr_port, server_name);
  if (!server) return refused(4, `error:host[${addr_port}],no find server [${server_name}]!`);
  if (server.isStatic) return refused(5, "only dynamic server,can to be delete!");
  state.servers.splice(state.servers.indexOf(server), 1);
  return DONE;
}
