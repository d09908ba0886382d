/** A process with one HTTP server on every loopback address, 127.0.0.0/8; prints its port. Ends with its standard input. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const server = createServer((_request, response) => response.writeHead(200, { "Content-Length": 2 }).end("ok"));
server.listen(0, "0.0.0.0", 4096, () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
process.stdin.on("end", () => process.exit(0)).resume();
