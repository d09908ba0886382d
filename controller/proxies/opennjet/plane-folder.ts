import {
  chmodSync,
  chownSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { claimFolder, PRIVATE } from "../../private-folder.js";
import type { NginxFolder } from "../nginx/run-folder.js";
import type { WorkerUser } from "../nginx/worker-user.js";
import type { Carrier } from "./parts.js";

/** Nobody but root and the group of the workers gets in, and these see no names. */
const THROUGH = 0o710;
const PRIVATE_FILE = 0o600;
/** What OpenNJet keeps over a restart; whatever it holds comes from us, and comes again. */
const STATE = ["data", "logs"];
/** What the key-value store is in; every process of OpenNJet opens it to write. */
const STORE = ["data.mdb", "lock.mdb"];
/** OpenNJet has no more workers. */
const MOST_WORKERS = 512;
/** What OpenNJet has as the kind of a process that is a worker, in names of files. */
const WORKER = 3;
/** What systems allow for the path of a unix socket. */
const MOST_PATH = 103;

/**
 * What all processes of an OpenNJet share, beside its private folder: the broker's socket and the store in `data`, `logs`, and the files of
 * `certificates`. Workers that are somebody else own single files here and no folder: so they can put nothing in the place of what
 * root opens, and nobody else reaches the broker, which asks nobody who they are.
 */
export class PlaneFolder {
  /** What OpenNJet is given as its folder for data. */
  readonly path: string;
  readonly errorLog: string;
  readonly certificates: string;
  /** Chain and key for names without a certificate; workers read it. */
  readonly defaultPair: string;

  /** `user`: who the workers are, where they are somebody else. Throws an Error for a folder that is not ours. */
  constructor(
    folder: NginxFolder,
    private readonly carrier: Carrier,
    readonly user: WorkerUser | undefined,
  ) {
    this.path = join(folder.temp, "plane");
    this.errorLog = this.inside("logs", "error.log");
    this.certificates = this.inside("certificates");
    this.defaultPair = this.inside("default", "pair.pem");
    if (Buffer.byteLength(this.inside("data", "mosquitto.sock")) > MOST_PATH) {
      throw new Error(`${folder.path} is too long for the path of a socket`);
    }
    claimFolder(this.path, PRIVATE);
    this.open(this.path);
    for (const name of ["certificates", "default"]) this.makeFolder(name);
    // Those of before may be another user's.
    for (const name of readdirSync(this.certificates)) this.own(join(this.certificates, name));
  }

  /** Takes away all that an OpenNJet of before has left but certificates, and makes what its workers can't make themselves. */
  makeFresh(): void {
    for (const name of STATE) {
      rmSync(this.inside(name), { recursive: true, force: true });
    }
    this.makeFiles();
  }

  /** Makes what is missing of the files that workers write, for an OpenNJet whose workers are replaced. */
  makeFiles(): void {
    for (const name of STATE) this.makeFolder(name);
    if (this.user === undefined) return;
    for (const name of STORE) this.makeFile(this.inside("data", name));
    for (let id = 0; id < MOST_WORKERS; id++) {
      this.makeFile(this.inside("logs", `work_iot_${id}`));
      if (this.carrier === "locations") this.makeFile(this.inside("logs", `${WORKER}_${id}_add_location.txt`));
    }
  }

  /** Puts the pair for names without a certificate in place, whole. */
  writeDefault({ chain, key }: { chain: string; key: string }): void {
    const content = `${chain.trim()}\n${key.trim()}\n`;
    const made = `${this.defaultPair}.new`;
    rmSync(made, { force: true });
    writeFileSync(made, content, { mode: PRIVATE_FILE, flag: "wx" });
    this.own(made);
    renameSync(made, this.defaultPair);
  }

  private inside(...names: string[]): string {
    return join(this.path, ...names);
  }

  private makeFolder(name: string): void {
    mkdirSync(this.inside(name), { recursive: true, mode: PRIVATE });
    this.open(this.inside(name));
  }

  /** Lets the workers through a folder of ours. */
  private open(path: string): void {
    if (this.user === undefined) return;
    chownSync(path, 0, this.user.gid);
    chmodSync(path, THROUGH);
  }

  private makeFile(path: string): void {
    closeSync(openSync(path, "a", PRIVATE_FILE));
    this.own(path);
  }

  private own(path: string): void {
    if (this.user !== undefined) chownSync(path, this.user.uid, this.user.gid);
  }
}
