import { Agent, type ClientRequest, type RequestOptions, request } from "node:http";
import { Agent as TlsAgent, request as tlsRequest } from "node:https";

/** Milliseconds that a connection may be idle before it is given up. */
const IDLE = 60_000;

/** Connections to peers, kept between requests. */
export class PeerAgents {
  readonly #plain = new Agent({ keepAlive: true, timeout: IDLE });
  readonly #tls = new TlsAgent({ keepAlive: true, timeout: IDLE });

  /**
   * A request to a peer, not begun yet. `kept`: over a connection that was kept, where there is one. Throws TypeError for what
   * can't stand in a request.
   */
  request(options: RequestOptions, tls: boolean, kept: boolean): ClientRequest {
    if (!tls) return request({ ...options, agent: kept && this.#plain });
    // Certificates of peers are not verified and no server name is sent, as is NGINX's default.
    return tlsRequest({ ...options, agent: kept && this.#tls, rejectUnauthorized: false, servername: "" });
  }
}
