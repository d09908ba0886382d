import { randomBytes } from "node:crypto";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { claimFolder, isReplaceable, PASSABLE, PRIVATE } from "../../private-folder.js";

/** The servers that can have such a folder, with the names of their configurations. */
const CONFIGURATIONS = { nginx: "nginx.conf", opennjet: "njet.conf" } as const;

/** Whose folder it is: its name. */
export type ServerName = keyof typeof CONFIGURATIONS;

/** What comes after the name of the server in that of its folder for temporary files. */
const TEMP = "-temp";
const SOCKET = "control.sock";
/** No longer than the other one. */
const CLAIM = "owner.sock";
const TOKEN = /^[\x21-\x7e]{32,512}$/;
/** What systems allow for the path of a unix socket (macOS 104, Linux 108, a zero at the end). */
const MOST_PATH = 103;
/** Text of a path that can stand in a configuration and in Lua as it is. */
const PLAIN_PATH = /^[\w@%+=:,./-]+$/;

/**
 * The private folder of an NGINX or OpenNJet: its configuration, the control socket with its token, the journal. Mode 0700, for it holds
 * private keys. Beside it is a folder for temporary files, which workers can get into that are somebody else.
 */
export class NginxFolder {
  /** Secret: never logged. */
  readonly token: string;
  readonly socket: string;
  readonly tokenFile: string;
  readonly journal: string;
  readonly configuration: string;
  readonly pidFile: string;
  /** Socket by which a controller has the folder for itself. */
  readonly claim: string;
  /** A named pipe. */
  readonly accessLog: string;
  /** Pair for handshakes that no object has a certificate for. */
  readonly certificateFile: string;
  readonly certificateKeyFile: string;

  /** Folder for what NGINX has no room for in its memory. */
  readonly temp: string;

  private constructor(
    readonly path: string,
    private readonly kind: "stable" | "temporary" | "foreign",
    server: ServerName,
    socketName = SOCKET,
    /** Paths of what others had put there, and which was taken away. */
    readonly foreign: readonly string[] = [],
  ) {
    this.socket = join(path, socketName);
    this.temp = `${path}${TEMP}`;
    this.claim = join(path, CLAIM);
    this.tokenFile = join(path, "token");
    this.journal = join(path, "state.journal");
    this.configuration = join(path, CONFIGURATIONS[server]);
    this.pidFile = join(path, "nginx.pid");
    this.accessLog = join(path, "access.pipe");
    this.certificateFile = join(path, "default.crt");
    this.certificateKeyFile = join(path, "default.key");
    if (Buffer.byteLength(this.socket) > MOST_PATH) throw new Error(`${path} is too long for the path of a socket`);
    if (kind !== "foreign" && !PLAIN_PATH.test(path)) {
      throw new Error(`${path} has characters that cannot stand in the configuration of NGINX`);
    }
    this.token = kind === "foreign" ? readToken(this.tokenFile) : this.keptToken();
  }

  /** The folder of that name in a folder that stays. Throws an Error for one that is not ours. */
  static stable(parent: string, server: ServerName = "nginx"): NginxFolder {
    mkdirSync(parent, { recursive: true, mode: PASSABLE });
    const path = join(realpathSync(parent), server);
    const foreign = claim(path);
    return new NginxFolder(path, "stable", server, SOCKET, foreign);
  }

  /** A fresh one, for a server that ends with its controller. */
  static temporary(server: ServerName = "nginx"): NginxFolder {
    const parent = realpathSync(mkdtempSync(join(tmpdir(), `njet-kic-${server}-`)));
    chmodSync(parent, PASSABLE);
    const path = join(parent, server);
    claim(path);
    return new NginxFolder(path, "temporary", server);
  }

  /** That of an NGINX which somebody else runs, by its control socket. Throws an Error where its token can't be read. */
  static of(socket: string): NginxFolder {
    return new NginxFolder(dirname(socket), "foreign", "nginx", basename(socket));
  }

  /** True if somebody else could put another folder in the place of this one. */
  get isReplaceable(): boolean {
    return isReplaceable(dirname(this.path));
  }

  /** True if the folder stays when its controller ends. */
  get stays(): boolean {
    return this.kind !== "temporary";
  }

  /** Writes a file with mode 0600, which takes its place whole. True if it has other content now. */
  write(path: string, content: string): boolean {
    try {
      if (readFileSync(path, "utf8") === content) return false;
    } catch {
      // There is none yet.
    }
    const made = `${path}.new`;
    rmSync(made, { force: true });
    writeFileSync(made, content, { mode: 0o600, flag: "wx" });
    renameSync(made, path);
    return true;
  }

  /**
   * Folder for the temporary files of workers of this user: one of its own, since those that a reload replaces still write to
   * theirs. The name is one of the user database.
   */
  tempOf(user: string | undefined): string {
    if (user === undefined) return this.temp;
    const path = join(this.temp, user);
    claimFolder(path, PASSABLE, { foreignFolders: true });
    return path;
  }

  /** What goes with an NGINX that nobody can take over; undefined if the folder stays. */
  get passing(): string | undefined {
    return this.stays ? undefined : dirname(this.path);
  }

  /** Takes the folder away, if it is temporary. */
  remove(): void {
    if (this.passing !== undefined) rmSync(this.passing, { recursive: true, force: true });
  }

  private keptToken(): string {
    try {
      return readToken(this.tokenFile);
    } catch {
      const token = randomBytes(32).toString("hex");
      this.write(this.tokenFile, `${token}\n`);
      return token;
    }
  }
}

/** Both folders, without what is not ours. Answers the paths of what was taken away. */
function claim(path: string): string[] {
  const temp = `${path}${TEMP}`;
  // Folders in there are the workers'.
  const kept = { foreignFolders: true };
  return [
    ...claimFolder(path, PRIVATE).map((name) => join(path, name)),
    ...claimFolder(temp, PASSABLE, kept).map((name) => join(temp, name)),
  ];
}

function readToken(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, "utf8").trim();
  } catch {
    throw new Error(`${file} does not exist or cannot be read`);
  }
  if (!TOKEN.test(text)) throw new Error(`${file} holds no token of 32 characters or more`);
  return text;
}
