import { Attempt, type Probe, reasonOf } from "./attempt.js";
import { ignoreErrors, openConnection, whenConnected } from "./connection.js";

/** Passes where a connection can be made, with its TLS handshake if the check has TLS. */
export const probeTcp: Probe = ({ address, port, check }, done) => {
  const socket = openConnection(address, port, check.tls);
  const attempt = new Attempt(done, () => {
    ignoreErrors(socket);
    socket.destroy();
  });
  attempt.step("connecting", check.connectTimeout);
  socket.on("error", (error) => attempt.fail(reasonOf(error)));
  // A peer that closes within the handshake.
  socket.on("close", () => attempt.fail("the peer closed the connection"));
  whenConnected(socket, check.tls, () => attempt.pass("connected"));
  return () => attempt.cancel();
};
