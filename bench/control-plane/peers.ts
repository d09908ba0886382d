/** A process that is every peer: it listens on all addresses, and answers with the one that it was reached at. */
import { createServer } from "node:http";
import { PEER_PORT } from "./site.js";

const server = createServer((request, response) => {
  const address = request.socket.localAddress ?? "";
  // Given here, `connection` keeps Node from adding how long it waits: most servers say nothing of it.
  const headers = { "content-type": "text/plain", "content-length": address.length, connection: "keep-alive" };
  response.writeHead(200, headers).end(address);
});
// Longer than the proxy keeps a connection: it is never this side that ends one.
server.keepAliveTimeout = 600_000;
server.listen(PEER_PORT, "0.0.0.0", 4096, () => process.send?.("listening"));
process.once("disconnect", () => process.exit());
