import { spawn } from "node:child_process";
import { dirname, join } from "node:path";

export interface KubectlAnswer {
  status: number | null;
  stdout: string;
  stderr: string;
}

/** The real kubectl, as people use it. */
export class Kubectl {
  /** `program`: path of kubectl. `kubeconfig`: whom it speaks as; what kubectl caches is kept beside that file. */
  constructor(
    private readonly program: string,
    private readonly kubeconfig: string,
  ) {}

  /** What a command prints. Rejects with what it says where it fails. */
  async run(...args: string[]): Promise<string> {
    const { status, stdout, stderr } = await this.attempt(args);
    if (status !== 0) throw new Error(`kubectl ${args.join(" ")}: ${status} ${stderr}`);
    return stdout;
  }

  /** Applies an object, or several, as `kubectl apply -f -` does. */
  async apply(...objects: unknown[]): Promise<string> {
    const list = JSON.stringify({ apiVersion: "v1", kind: "List", items: objects });
    const { status, stdout, stderr } = await this.attempt(["apply", "-f", "-"], list);
    if (status !== 0) throw new Error(`kubectl apply: ${status} ${stderr}`);
    return stdout;
  }

  /** Rows of a table that kubectl prints, by the heads of its columns. */
  async table(...args: string[]): Promise<Record<string, string>[]> {
    const [head = "", ...rows] = (await this.run(...args)).split("\n").filter((line) => line !== "");
    const columns = [...head.matchAll(/\S+(?: \S+)*/g)].map(({ 0: name, index }) => ({ name, from: index }));
    return rows.map((row) =>
      Object.fromEntries(
        columns.map(({ name, from }, index) => [name, row.slice(from, columns[index + 1]?.from).trim()]),
      ),
    );
  }

  /** Runs a command, whatever comes of it. */
  attempt(args: readonly string[], input = ""): Promise<KubectlAnswer> {
    const folder = dirname(this.kubeconfig);
    const child = spawn(this.program, ["--kubeconfig", this.kubeconfig, ...args], {
      env: { ...process.env, HOME: folder, KUBECACHEDIR: join(folder, "kubectl-cache"), KUBERC: "off" },
    });
    const answer = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8").on("data", (text: string) => {
        answer[name] += text;
      });
    }
    child.stdin.on("error", () => undefined);
    child.stdin.end(input);
    return new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (status) => resolve({ status, ...answer }));
    });
  }
}
