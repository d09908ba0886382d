/** How long workers are asked, where one of them takes no connection for a while. */
import { expect, it } from "vitest";
import { isMarker, markerOf } from "../../controller/proxies/opennjet/locations/marker.js";
import type { DataPlane, PlaneAnswer } from "../../controller/proxies/opennjet/locations/questions.js";
import {
  askWorkers,
  isRight,
  type WorkersQuestion,
} from "../../controller/proxies/opennjet/locations/worker-rounds.js";

const MARKER = markerOf(["one", "two"], "0123456789abcdef0123456789abcdef");

/** A plane of two workers by rounds: the second takes a connection from round `takes` on, and has all from round `has` on. */
function planeWithLateWorker(takes: number, has: number) {
  let round = 0;
  let connections = 0;
  const plane: DataPlane = {
    workers: () => 2,
    connect: () => {
      const isSecond = round >= takes && connections++ % 2 === 1;
      return { ask: async () => answer(isSecond ? 22 : 11, !isSecond || round >= has), close: () => undefined };
    },
  };
  const wait = async () => {
    round++;
  };
  const ask = (patience: WorkersQuestion["patience"]) =>
    askWorkers(
      { plane, wait },
      { marker: MARKER, before: undefined, patience, expectedOf: () => [], gaveUp: () => false },
    );
  return { ask, round: () => round };
}

function answer(process: number, isThere: boolean): PlaneAnswer {
  const id = MARKER.question.path.slice(MARKER.question.path.lastIndexOf("/") + 1);
  return isThere
    ? { status: 302, location: `http://${id}/${process}`, body: "" }
    : { status: 404, location: undefined, body: String(process) };
}

it("A start waits for a worker that takes no connection in the first seconds, until it has all", async () => {
  expect(isMarker(MARKER)).toBe(true);
  const late = planeWithLateWorker(80, 100);
  expect(isRight(await late.ask("start"))).toBe(true);
  expect(late.round()).toBe(100);
});

it("A start does not wait without end for a worker that takes no connection", async () => {
  const late = planeWithLateWorker(Number.POSITIVE_INFINITY, 0);
  expect(isRight(await late.ask("start"))).toBe(true);
  expect(late.round()).toBe(199);
});

it("A look waits for nobody: who takes no connection is asked at the next", async () => {
  const late = planeWithLateWorker(80, 100);
  expect(isRight(await late.ask("look"))).toBe(true);
  expect(late.round()).toBe(1);
});
