import { connect } from "node:net";
import { errorCode } from "../../observability/logger.js";

/** Whether somebody listens on a unix socket: true, or the code of the system's error, such as ECONNREFUSED where its process has ended. */
export function isListenedOn(path: string): Promise<true | string> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", (error) => resolve(errorCode(error) ?? ""));
  });
}
