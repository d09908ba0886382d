/** Who the workers of an NGINX or OpenNJet are whose master is root. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Logger } from "../../observability/logger.js";

/** A user and its group, as the user database names them. */
export interface WorkerUser {
  name: string;
  uid: number;
  group: string;
  gid: number;
}

/** Users without rights that NGINX runs as by custom, the first that exists is taken: Debian's, that of NGINX's own packages, anybody's. */
const CUSTOMARY = ["www-data", "nginx", "nobody"];
const NAME = /^[A-Za-z_][\w.-]{0,63}$/;

/** A user database: the text of `/etc/passwd` and `/etc/group` (passwd(5), group(5)). */
export interface UserDatabase {
  passwd: string;
  group: string;
}

/** That of this machine; empty texts where there are no such files. */
export function userDatabase(): UserDatabase {
  const read = (path: string) => {
    try {
      return readFileSync(path, "utf8");
    } catch {
      return "";
    }
  };
  return { passwd: read("/etc/passwd"), group: read("/etc/group") };
}

/** A user by `NAME` or `NAME:GROUP`; without a group, its primary one. Throws an Error that says what is not there. */
export function findUser(text: string, { passwd, group }: UserDatabase): WorkerUser {
  const [name = "", groupName, rest] = text.split(":");
  if (!NAME.test(name) || rest !== undefined || (groupName !== undefined && !NAME.test(groupName))) {
    throw new Error(`${JSON.stringify(text)} is not the name of a user, nor USER:GROUP`);
  }
  const user = records(passwd).find((fields) => fields[0] === name);
  if (user === undefined) throw new Error(`there is no user ${name} on this machine`);
  const [, , uid, primary] = user;
  const found = records(group).find((fields) =>
    groupName === undefined ? fields[2] === primary : fields[0] === groupName,
  );
  // NGINX takes a group by its name only.
  if (found === undefined) throw new Error(`there is no group ${groupName ?? `with the number ${primary} of ${name}`}`);
  const numbers = { uid: Number(uid), gid: Number(found[2]) };
  if (!Number.isInteger(numbers.uid) || !Number.isInteger(numbers.gid) || !NAME.test(found[0])) {
    throw new Error(`the user database makes no sense of ${name}`);
  }
  return { name, group: found[0], ...numbers };
}

/** The customary user of this machine; undefined if it has none. */
export function customaryUser(database: UserDatabase): WorkerUser | undefined {
  for (const name of CUSTOMARY) {
    try {
      return findUser(name, database);
    } catch {
      // The next one may be there.
    }
  }
  return undefined;
}

/**
 * Whether a user can get into a folder, asked of the system itself: a process of that user tries it. Resolves with undefined,
 * or with why not. To be called as root.
 */
export function whyUnreachable({ name, uid, gid }: WorkerUser, folder: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile("sh", ["-c", 'cd -- "$1"', "sh", folder], { cwd: "/", uid, gid }, (error) => {
      if (!error) resolve(undefined);
      else if (typeof error.code === "number") resolve(`${name} can't get into ${folder}`);
      else resolve(`no process can be started as ${name} here (${error.code})`);
    });
  });
}

const ROOT: WorkerUser = { name: "root", uid: 0, group: "root", gid: 0 };

export interface WorkerUserChoice {
  /** What the log calls the server. */
  server: string;
  /** Where workers have to get to. */
  folder: string;
  /** Of `--nginx-user`; undefined: the customary one. */
  asked: string | undefined;
  logger: Logger;
}

/** Who the workers are: undefined where a server can only be who we are. Rejects with an Error for a user that can't be. */
export async function chooseWorkerUser({
  server,
  folder,
  asked,
  logger,
}: WorkerUserChoice): Promise<WorkerUser | undefined> {
  if (process.getuid?.() !== 0) {
    if (asked !== undefined) throw new Error("--nginx-user: only root can have workers of another user");
    return undefined;
  }
  const user = asked === undefined ? customaryUser(userDatabase()) : askedUser(asked);
  const why = user === undefined ? "there is no user without rights" : await whyUnreachable(user, folder);
  if (user !== undefined && why === undefined) return user;
  if (asked !== undefined) throw new Error(`--nginx-user: ${why}`);
  logger.warn(`workers of ${server} run as root`, {
    why,
    remedy: "name a user with --nginx-user, or start all of it as one",
  });
  return ROOT;
}

function askedUser(asked: string): WorkerUser {
  try {
    return findUser(asked, userDatabase());
  } catch (error) {
    throw new Error(`--nginx-user: ${(error as Error).message}`);
  }
}

function records(text: string): string[][] {
  return text.split("\n").map((line) => line.split(":"));
}
