import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { claimFolder, PRIVATE } from "../private-folder.js";

/** How a probe process can be spoken to. */
export interface ProbeAddress {
  /** Path of its unix socket. */
  socket: string;
  /** Secret: never logged. */
  token: string;
}

/** What systems allow for the path of a unix socket (macOS 104, Linux 108, a zero at the end). */
const MOST_PATH = 103;
const FOLDER = "health";
const RECORD = "process.json";
const SOCKET_NAME = /^[0-9a-f]{16}\.sock$/;
const TOKEN = /^[0-9a-f]{64}$/;

/** A private folder in which a probe process has its socket. */
export class RunFolder {
  private constructor(
    readonly path: string,
    /** It stays, and the next controller looks into it. */
    readonly stable: boolean,
  ) {}

  /**
   * `health` in a folder that stays, made with mode 0700 if it is not there; without what others have put into it. Throws an
   * Error for one that is not ours.
   */
  static stable(parent: string): RunFolder {
    const path = join(parent, FOLDER);
    claimFolder(path, PRIVATE);
    return checked(new RunFolder(path, true));
  }

  /** A fresh one, for a process that ends with its controller. */
  static temporary(): RunFolder {
    return checked(new RunFolder(mkdtempSync(join(tmpdir(), "njet-kic-")), false));
  }

  /** A new socket and token. */
  newAddress(): ProbeAddress {
    return { socket: this.#socketPath(randomBytes(8).toString("hex")), token: randomBytes(32).toString("hex") };
  }

  /** The process that a controller before us has left here; undefined if there is none, or it cannot be read. */
  recorded(): ProbeAddress | undefined {
    try {
      const { socket, token } = JSON.parse(readFileSync(join(this.path, RECORD), "utf8")) as Record<string, unknown>;
      if (typeof socket !== "string" || !SOCKET_NAME.test(socket)) return undefined;
      if (typeof token !== "string" || !TOKEN.test(token)) return undefined;
      return { socket: join(this.path, socket), token };
    } catch {
      return undefined;
    }
  }

  /** Leaves the address for the next controller: a file of mode 0600, which takes its place whole. */
  record({ socket, token }: ProbeAddress): void {
    if (!this.stable) return;
    const made = join(this.path, `${RECORD}.new`);
    rmSync(made, { force: true });
    writeFileSync(made, JSON.stringify({ socket: socket.slice(this.path.length + 1), token }), {
      mode: 0o600,
      flag: "wx",
    });
    renameSync(made, join(this.path, RECORD));
  }

  /** Takes away the sockets of processes that did not answer. */
  clear(): void {
    for (const name of readdirSync(this.path)) {
      if (SOCKET_NAME.test(name)) rmSync(join(this.path, name), { force: true });
    }
  }

  /** Takes the folder away, unless it stays. */
  remove(): void {
    if (!this.stable) rmSync(this.path, { recursive: true, force: true });
  }

  #socketPath(name: string): string {
    return join(this.path, `${name}.sock`);
  }
}

function checked(folder: RunFolder): RunFolder {
  const { socket } = folder.newAddress();
  if (Buffer.byteLength(socket) <= MOST_PATH) return folder;
  folder.remove();
  throw new Error(`${folder.path} is too long for the path of a socket`);
}
