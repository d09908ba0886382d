/** `njet-kic/opennjet`: a typed client of the APIs with which a running OpenNJet is changed. README.md describes it. */
export type {
  Backend,
  BackendEndpoint,
  BackendsApiOptions,
  CookieAffinity,
  PostedServers,
  PostResult,
  TrafficShaping,
} from "./backends-api.js";
export { BackendsApi } from "./backends-api.js";
export type { CertificateType, CertifiedServer, ServerCertificate } from "./certificates.js";
export type * from "./declared.js";
export * from "./errors.js";
export type { HealthCheck, HealthCheckName, HealthCheckType } from "./health-checks.js";
export { WORKER_COUNT_KEY } from "./key-value.js";
export type { DynamicLocation, ServerAddress } from "./locations.js";
export type { DynamicMap, MapValue } from "./maps.js";
export { OpenNjetApi, type OpenNjetApiOptions } from "./opennjet-api.js";
export { BASE_PATH, PATHS } from "./paths.js";
export type { DynamicServer } from "./servers.js";
export type {
  MemberChange,
  MemberState,
  NewMember,
  UpstreamMember,
  UpstreamState,
  UpstreamSummary,
} from "./upstreams.js";
