import type { IncomingMessage, ServerResponse } from "node:http";
import type { BundleRouter } from "./bundle-router.js";
import { createHandler, type HandlerOptions } from "./handler.js";

/** What of fastify is used; its own types fit. */
export interface FastifyLike {
  removeAllContentTypeParsers(): void;
  addContentTypeParser(
    type: string,
    parser: (request: unknown, payload: unknown, done: (error: null) => void) => void,
  ): unknown;
  all(
    path: string,
    handler: (request: { raw: IncomingMessage }, reply: { raw: ServerResponse; hijack(): unknown }) => void,
  ): unknown;
}

/**
 * A plugin of fastify: requests that no route of the application takes are decided by the core, and passed on to peers.
 * `fastify.register(corePlugin, { router })`.
 */
export async function corePlugin(
  fastify: FastifyLike,
  options: { router: BundleRouter } & HandlerOptions,
): Promise<void> {
  const handle = createHandler(options.router, options);
  // Bodies are streamed to the peer: nobody reads them before.
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser("*", (_request, _payload, done) => done(null));
  fastify.all("/*", (request, reply) => {
    reply.hijack();
    handle(request.raw, reply.raw);
  });
}
