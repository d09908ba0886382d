import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Exchange } from "./exchange.js";

/** What is due on a connection once the exchange before it is over. */
interface Turn {
  /** The request that waits, if it is one. */
  request: IncomingMessage | undefined;
  run(): void;
}

interface State {
  refused: boolean;
  active: Exchange | undefined;
  waiting: Turn[];
  /** Bytes of the connection that were counted for exchanges that are over. */
  received: number;
  sent: number;
}

/**
 * Keeps the order of what arrives on each client connection. Node hands pipelined requests over as fast as they come;
 * here one is begun when the one before is over (RFC 9112 9.3.2: only safe methods could run side by side), so that a
 * client can't multiply its requests towards peers and nothing is written into the middle of an answer.
 */
export class ClientConnections {
  private readonly states = new WeakMap<Socket, State>();

  /** From here on nothing that arrives on the connection, or waits on it, is looked at. */
  refuse(socket: Socket): void {
    const state = this.stateOf(socket);
    state.refused = true;
    state.waiting.length = 0;
  }

  /** The exchange under way on a connection. */
  active(socket: Socket): Exchange | undefined {
    return this.states.get(socket)?.active;
  }

  /** Runs `run` at once, or after what is before it on the connection; never on a connection that was refused. */
  inTurn(socket: Socket, request: IncomingMessage | undefined, run: () => void): void {
    const state = this.stateOf(socket);
    if (state.refused) return;
    if (state.active === undefined) run();
    else state.waiting.push({ request, run });
  }

  /** Forgets the request that came last if it still waits and is incomplete: its body can't be read any more. */
  dropIncomplete(socket: Socket): void {
    const waiting = this.states.get(socket)?.waiting;
    if (waiting?.at(-1)?.request?.complete === false) waiting.pop();
  }

  /** Bytes that came in and went out since the last call for this connection, heads and all. */
  takeTraffic(socket: Socket): { received: number; sent: number } {
    const state = this.stateOf(socket);
    const { bytesRead, bytesWritten } = socket;
    const taken = { received: bytesRead - state.received, sent: bytesWritten - state.sent };
    state.received = bytesRead;
    state.sent = bytesWritten;
    return taken;
  }

  /** True for a connection that has sent something since its last request ended, and no whole request head. */
  isReading(socket: Socket): boolean {
    const state = this.states.get(socket);
    return state?.active === undefined && socket.bytesRead > (state?.received ?? 0);
  }

  begin(exchange: Exchange): void {
    this.stateOf(exchange.socket).active = exchange;
  }

  end(exchange: Exchange): void {
    const { socket } = exchange;
    const state = this.stateOf(socket);
    state.active = undefined;
    if (!socket.writable) state.waiting.length = 0;
    // One that begins an exchange makes the others wait again.
    while (state.active === undefined) {
      const next = state.waiting.shift();
      if (next === undefined) return;
      next.run();
    }
  }

  private stateOf(socket: Socket): State {
    let state = this.states.get(socket);
    if (state === undefined) {
      state = { refused: false, active: undefined, waiting: [], received: 0, sent: 0 };
      this.states.set(socket, state);
    }
    return state;
  }
}
