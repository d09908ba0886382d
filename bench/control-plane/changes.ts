import type { KubeClient } from "../../test/real/kube/client.js";
import type { KeptConnection } from "./kept-connection.js";
import {
  addressesOf,
  addressPrefix,
  BACKGROUND,
  hostOf,
  ingressOf,
  STABLE,
  serviceOf,
  siteName,
  sliceOf,
} from "./site.js";

export type ChangeKind = "new host" | "path change" | "endpoint change";
export const CHANGE_KINDS: readonly ChangeKind[] = ["new host", "path change", "endpoint change"];
/** A change that is not seen within this time ends the run. */
const DEADLINE_MS = 30_000;

/** Changes of sites of a cluster of `count`, and the first request that sees each. */
export class Changes {
  readonly #client: KubeClient;
  readonly #count: number;
  readonly #versions = new Map<number, number>();
  #made = 0;
  #next = 0;

  constructor(client: KubeClient, count: number) {
    this.#client = client;
    this.#count = count;
  }

  /** Makes everything that there is at the start. */
  async populate(): Promise<void> {
    const one = async (index: number) => {
      const name = siteName(index);
      await this.#client.apply(serviceOf(index));
      await this.#client.apply(sliceOf(index, 0));
      await this.#client.apply(ingressOf(name, name));
    };
    let next = 0;
    const worker = async () => {
      while (next < this.#count) await one(next++);
    };
    await Promise.all(Array.from({ length: 12 }, worker));
  }

  /** As many changes of endpoints, on all sites but the stable ones, as fast as the API server takes them. */
  async many(count: number): Promise<void> {
    let done = 0;
    const worker = async () => {
      while (done < count) await this.moveEndpoints(STABLE + (done++ % (this.#count - STABLE)));
    };
    await Promise.all(Array.from({ length: 6 }, worker));
  }

  /** Gives a site three other endpoints. */
  async moveEndpoints(index: number): Promise<string[]> {
    const version = (this.#versions.get(index) ?? 0) + 1;
    this.#versions.set(index, version);
    await this.#client.patch(sliceOf(index, 0), { endpoints: sliceOf(index, version).endpoints });
    return addressesOf(index, version);
  }

  /** Makes a change; resolves, when the API server has answered, with what a request must see. */
  async make(kind: ChangeKind): Promise<{ host: string; path: string; seen: (body: string) => boolean }> {
    const index = this.#target(kind === "endpoint change");
    const name = siteName(index);
    const mine = (body: string) => body.startsWith(addressPrefix(index));
    switch (kind) {
      case "new host": {
        const fresh = `fresh-${++this.#made}-${Date.now()}`;
        await this.#client.apply(ingressOf(fresh, name));
        return { host: hostOf(fresh), path: "/shop", seen: mine };
      }
      case "path change": {
        const path = `/shop-${++this.#made}-${Date.now()}`;
        await this.#client.patch(ingressOf(name, name), { spec: ingressOf(name, name, path).spec });
        return { host: hostOf(name), path, seen: mine };
      }
      case "endpoint change": {
        const addresses = await this.moveEndpoints(index);
        return { host: hostOf(name), path: "/shop", seen: (body) => addresses.includes(body) };
      }
    }
  }

  /** Milliseconds from the API server's answer to the answer of the first request that sees the change. */
  async time(kind: ChangeKind, connection: KeptConnection): Promise<number> {
    const { host, path, seen } = await this.make(kind);
    const begun = performance.now();
    for (;;) {
      const { status, body } = await connection.ask(host, path);
      const now = performance.now();
      if (status === 200 && seen(body)) return now - begun;
      if (now - begun > DEADLINE_MS) throw new Error(`${kind}: ${host}${path} is still answered ${status} ${body}`);
    }
  }

  /** Endpoint updates on sites of their own, at even times, until the function that is returned is called. */
  background(perSecond: number): () => Promise<void> {
    let turn = 0;
    let failure: unknown;
    const under = new Set<Promise<unknown>>();
    const timer = setInterval(() => {
      const change = this.moveEndpoints(STABLE + (turn++ % BACKGROUND)).catch((error: unknown) => {
        failure ??= error;
      });
      under.add(change);
      change.finally(() => under.delete(change));
    }, 1000 / perSecond);
    return async () => {
      clearInterval(timer);
      await Promise.all(under);
      if (failure !== undefined) throw failure;
    };
  }

  /** A site that nothing else uses; those whose endpoints change keep their paths. */
  #target(endpoints: boolean): number {
    const first = STABLE + BACKGROUND;
    const pairs = (this.#count - first) >> 1;
    return first + 2 * (this.#next++ % pairs) + (endpoints ? 1 : 0);
  }
}
