import { describe, expect, it } from "vitest";
import { ObjectEvents } from "../../controller/kubernetes/object-events.js";

const MINUTE = 60_000;
const shop = { kind: "VirtualServer", namespace: "default", name: "shop" };

/** Events of peers, with a clock by hand; `written` holds the notes that go to the recorder, with the UID of their object. */
function start() {
  const state = { now: 0, leads: true, written: [] as string[] };
  const events = new ObjectEvents({
    events: { record: ({ uid }, _type, _reason, note) => state.written.push(`${uid} ${note}`) },
    clock: { now: () => state.now, sleep: async () => undefined },
    leads: () => state.leads,
    regarding: ({ kind, namespace, name }) =>
      name === "gone" ? undefined : { apiVersion: "k8s.njet.org/v1", kind, namespace, name, uid: `uid-${name}` },
  });
  const down = (name: string, message: string) =>
    events.record({ type: "Warning", reason: "PeerDown", object: { ...shop, name }, message });
  return { state, down };
}

describe("Events of peers", () => {
  it("are written by the leader only, and of objects that are there", () => {
    const { state, down } = start();
    down("shop", "one");
    down("gone", "two");
    state.leads = false;
    down("shop", "three");
    expect(state.written).toEqual(["uid-shop one"]);
  });

  it("are at most 25 of one object at once and one in five minutes then; other objects do not suffer", () => {
    const { state, down } = start();
    for (let index = 0; index < 1000; index++) down("shop", String(index));
    expect(state.written).toHaveLength(25);
    down("other", "one");
    expect(state.written.at(-1)).toBe("uid-other one");
    state.now = 5 * MINUTE - 1;
    down("shop", "early");
    expect(state.written).toHaveLength(26);
    state.now = 5 * MINUTE;
    down("shop", "later");
    down("shop", "too many");
    expect(state.written.slice(26)).toEqual(["uid-shop later"]);
  });
});
