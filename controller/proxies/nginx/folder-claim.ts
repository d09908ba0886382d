import { rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { errorCode } from "../../observability/logger.js";
import { isListenedOn } from "./unix-socket.js";

/** A socket that nobody listens on is what a controller leaves that was killed. */
const NOBODY = ["ECONNREFUSED", "ENOENT"];
const TRIES = 3;

/**
 * A folder is one controller's: two would write the same journal over each other, and each would take away what the other has
 * delivered. The claim is a unix socket that is listened on, so that it ends with its process, however that ends, and holds
 * between containers that share the folder.
 */
export class FolderClaim {
  private constructor(private readonly server: Server) {}

  /** Rejects with an Error where another controller has the folder, or with the system's error. */
  static async take(path: string): Promise<FolderClaim> {
    for (let tries = 1; ; tries++) {
      try {
        return new FolderClaim(await listen(path));
      } catch (error) {
        if (errorCode(error) !== "EADDRINUSE") throw error;
        if (tries === TRIES || (await isHeld(path))) {
          throw new Error(`another controller is at work in the folder of ${path}`);
        }
        rmSync(path, { force: true });
      }
    }
  }

  release(): Promise<void> {
    return new Promise((resolve) => this.server.close(() => resolve()));
  }
}

function listen(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", reject);
    server.listen(path, () => {
      server.off("error", reject);
      server.on("error", () => undefined);
      server.unref();
      resolve(server);
    });
  });
}

async function isHeld(path: string): Promise<boolean> {
  const answer = await isListenedOn(path);
  // Whatever else is in the way does not show that nobody is there.
  return answer === true || !NOBODY.includes(answer);
}
