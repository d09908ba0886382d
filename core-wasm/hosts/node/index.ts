/** njet-kic/core/node: a router over bundles, a reverse proxy for node:http and fastify, and workers of a cluster. */
export { BundleRouter } from "./bundle-router.js";
export { corePlugin, type FastifyLike } from "./fastify.js";
export { createHandler, type Handler, type HandlerOptions } from "./handler.js";
export { requestInput } from "./request-input.js";
export { ClusterPrimary, followPrimary, type PrimaryEvents } from "./workers.js";
