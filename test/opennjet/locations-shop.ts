/** The carrier locations over a double with two workers, and a shop whose answers each of them is asked for. */
import { expect } from "vitest";
import { ingress, service } from "../cli/objects.js";
import { closing } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { httpPeer } from "../support/peers.js";
import { type CarriedDouble, type CarriedDoubleOptions, carriedDouble } from "./carried-double.js";
import { type Driven, drivenByObjects } from "./locations-changing.js";

export const SHOP_HOST = "shop.example.com";
/** Longer than the carrier takes to look whether all is there. */
const LOOKED = 40_000;
/** As many answers in a row as show each worker of the double twice. */
const ANSWERS = 4;

export type Shop = CarriedDouble &
  Driven & {
    /** Of peers: the service and the path of each request. */
    targets: string[];
  };

/** Services `one`, `two` and `any`, and an Ingress of the host for `one`. */
export async function shop(options: CarriedDoubleOptions = {}): Promise<Shop> {
  const made = await carriedDouble(options);
  const driven = await drivenByObjects(made.carrier);
  const targets: string[] = [];
  for (const name of ["one", "two", "any"]) {
    const peer = closing(
      await httpPeer((request, response) => {
        targets.push(`${name} ${request.url}`);
        response.end(name);
      }),
    );
    await driven.set(service(name, "127.0.0.1", peer.port));
  }
  expect(await driven.set(ingress("shop", SHOP_HOST, "one"))).toEqual([]);
  return { ...made, ...driven, targets };
}

/** An Ingress with a default backend, for what no host takes. */
export function defaultIngress(name: string, to: string): string {
  const backend = `{ service: { name: ${to}, port: { number: 80 } } }\n`;
  return ingress(name, "-", to).replace(/rules:.*/s, `defaultBackend: ${backend}`);
}

/** What the workers answer, each of them twice. */
export async function answers({ http }: Pick<Shop, "http">, host = SHOP_HOST): Promise<string[]> {
  const found = [];
  for (let i = 0; i < ANSWERS; i++) {
    const { status, body } = await ask(http, { host });
    found.push(status === 200 ? body : String(status));
  }
  return found;
}

export const all = (answer: string) => Array(ANSWERS).fill(answer);

export async function untilAll(made: Shop, answer: string, host = SHOP_HOST): Promise<void> {
  let found: string[] = [];
  const deadline = performance.now() + LOOKED;
  while (found.join() !== all(answer).join()) {
    if (performance.now() > deadline) expect(found).toEqual(all(answer));
    found = await answers(made, host);
  }
}
