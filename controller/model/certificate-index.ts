import type { CertificateRequest, SecretFragment } from "../resources/fragments.js";
import type { ObjectMeta } from "../resources/metadata.js";
import { refText } from "../resources/object-ref.js";
import { type Problem, quote } from "../resources/problem.js";
import { AgeOrdered, compareText } from "./age.js";
import { Links } from "./links.js";
import type { ReferenceIndex } from "./reference-index.js";
import type { Certificate } from "./types.js";

/** A Secret; `fragment` is missing if it is of another type or not usable. */
export interface SecretState {
  isTls: boolean;
  fragment?: SecretFragment;
}

/** An object that asks for certificates. */
export interface CertificateClaimant {
  meta: ObjectMeta;
  certificates: readonly CertificateRequest[];
}

interface Claim {
  meta: ObjectMeta;
  request: CertificateRequest;
}

/**
 * Which certificate is served for which host. It follows the host that an object names, never the names inside the
 * certificate. Of several objects that name one host, the oldest with a usable Secret decides; where a VirtualServer has
 * the host, it alone decides.
 */
export class CertificateIndex {
  /** How many certificates were built so far. */
  rebuilt = 0;
  readonly #secrets = new Map<string, SecretState>();
  readonly #claims = new Map<string, AgeOrdered<Claim>>();
  readonly #hostsOfSecret = new Links();
  readonly #built = new Map<string, Certificate>();
  readonly #findings = new Map<string, Map<string, Problem>>();
  readonly #dirty = new Set<string>();
  readonly #exclusiveOwner: (host: string) => string | undefined;
  readonly #references: ReferenceIndex;

  /** `exclusiveOwner` names the VirtualServer (`Kind/namespace/name`) that has a host, if one has. */
  constructor(exclusiveOwner: (host: string) => string | undefined, references: ReferenceIndex) {
    this.#exclusiveOwner = exclusiveOwner;
    this.#references = references;
  }

  /** `name` is `namespace/name`. */
  setSecret(name: string, secret: SecretState | undefined): void {
    if (secret === undefined) this.#secrets.delete(name);
    else this.#secrets.set(name, secret);
    for (const host of this.#hostsOfSecret.of(name)) this.#dirty.add(host);
  }

  /** Adds the certificates that an object asks for. The first request for a host counts. */
  request(meta: ObjectMeta, requests: readonly CertificateRequest[]): void {
    for (const request of firstOfEachHost(requests)) {
      const claims = this.#claims.get(request.host) ?? new AgeOrdered<Claim>();
      this.#claims.set(request.host, claims);
      claims.add({ meta, request });
      this.#hostsOfSecret.link(request.secret, request.host);
      this.#dirty.add(request.host);
    }
  }

  withdraw(meta: ObjectMeta, requests: readonly CertificateRequest[]): void {
    for (const request of firstOfEachHost(requests)) {
      const claims = this.#claims.get(request.host);
      claims?.remove(meta);
      if (claims?.size === 0) this.#claims.delete(request.host);
      this.#hostsOfSecret.unlink(request.secret, request.host);
      this.#dirty.add(request.host);
    }
  }

  /** The owner of the host, or what its objects may refer to, may have changed. */
  touchHost(host: string): void {
    if (this.#claims.has(host)) this.#dirty.add(host);
  }

  /** Builds what was touched and returns what is different now. Objects whose problems may differ go to `touched`. */
  rebuild(touched: Set<string>): Map<string, Certificate | undefined> {
    const changes = new Map<string, Certificate | undefined>();
    for (const host of [...this.#dirty].sort(compareText)) {
      for (const object of this.#findings.get(host)?.keys() ?? []) touched.add(object);
      const before = this.#built.get(host);
      const now = this.#choose(host, touched);
      if (now === undefined) this.#built.delete(host);
      else this.#built.set(host, now);
      if (before?.fingerprint !== now?.fingerprint || before?.resource !== now?.resource) changes.set(host, now);
    }
    this.#dirty.clear();
    return changes;
  }

  all(): Map<string, Certificate> {
    return new Map(this.#built);
  }

  /** Problem of the object with its request for `host`. */
  problemOf(object: string, host: string): Problem | undefined {
    return this.#findings.get(host)?.get(object);
  }

  /**
   * As problemOf, if `after` stood in the place of what the index holds of the object (`before`), and `owner` had the
   * host alone. Nothing is changed.
   */
  problemAfter(
    host: string,
    before: CertificateClaimant | undefined,
    after: CertificateClaimant,
    owner: string | undefined,
  ): Problem | undefined {
    const claims = this.#claims.get(host)?.copy() ?? new AgeOrdered<Claim>();
    if (before !== undefined) claims.remove(before.meta);
    const request = after.certificates.find((candidate) => candidate.host === host);
    if (request !== undefined) claims.add({ meta: after.meta, request });
    return this.#decide(claims, owner).findings.get(refText(after.meta.ref));
  }

  /** The objects (`Kind/namespace/name`) that ask for the certificate that the host has. */
  usersOf(host: string): string[] {
    return [...(this.#claims.get(host) ?? [])]
      .filter(({ request }) => this.serves(request))
      .map(({ meta }) => refText(meta.ref));
  }

  /** Whether the host has the certificate that is asked for. */
  serves({ host, secret }: CertificateRequest): boolean {
    return this.#built.get(host)?.resource === `Secret/${secret}`;
  }

  #choose(host: string, touched: Set<string>): Certificate | undefined {
    this.rebuilt += 1;
    const claims = this.#claims.get(host);
    for (const { meta } of claims ?? []) touched.add(refText(meta.ref));
    const { certificate, findings } = this.#decide(claims ?? [], this.#exclusiveOwner(host));
    if (findings.size > 0) this.#findings.set(host, findings);
    else this.#findings.delete(host);
    return certificate;
  }

  #decide(claims: Iterable<Claim>, owner: string | undefined) {
    const findings = new Map<string, Problem>();
    let chosen: { claim: Claim; certificate: Certificate } | undefined;
    for (const claim of claims) {
      const object = refText(claim.meta.ref);
      const entitled = owner === undefined ? claim.meta.ref.kind !== "VirtualServer" : object === owner;
      if (!entitled) continue;
      const refusal = this.#references.refusal(claim.request.reference);
      const secret = refusal === undefined ? this.#secrets.get(claim.request.secret) : undefined;
      const problem =
        (refusal && { ...refusal, message: `${refusal.message}; the default certificate is served` }) ??
        secretProblem(claim.request, secret) ??
        takenProblem(claim.request, chosen?.claim);
      if (problem !== undefined) findings.set(object, { ...problem, path: claim.request.path, severity: "warning" });
      if (chosen === undefined && secret?.fragment !== undefined) {
        chosen = { claim, certificate: certificateOf(claim.request, secret.fragment) };
      }
    }
    return { certificate: chosen?.certificate, findings };
  }
}

function certificateOf(request: CertificateRequest, secret: SecretFragment): Certificate {
  const { chain, key, fingerprint } = secret;
  return { host: request.host, chain, key, resource: `Secret/${request.secret}`, fingerprint };
}

function secretProblem(
  { secret: name, host }: CertificateRequest,
  secret: SecretState | undefined,
): Pick<Problem, "code" | "message"> | undefined {
  if (secret === undefined) {
    return { code: "SECRET_MISSING", message: `the Secret ${name} does not exist; the default certificate is served` };
  }
  if (secret.fragment === undefined) {
    const reason = secret.isTls ? "is not usable" : "is not of type kubernetes.io/tls";
    return { code: "SECRET_UNUSABLE", message: `the Secret ${name} ${reason}; the default certificate is served` };
  }
  if (secret.fragment.covers(host)) return undefined;
  const message = `the certificate in Secret ${name} is not made for ${quote(host)}; it is served all the same`;
  return { code: "CERTIFICATE_NAME_MISMATCH", message };
}

function takenProblem(
  { secret, host }: CertificateRequest,
  winner: Claim | undefined,
): Pick<Problem, "code" | "message"> | undefined {
  if (winner === undefined || winner.request.secret === secret) return undefined;
  const owner = refText(winner.meta.ref);
  return { code: "CERTIFICATE_TAKEN", message: `${owner} is older and brings the certificate for ${quote(host)}` };
}

function firstOfEachHost(requests: readonly CertificateRequest[]): Iterable<CertificateRequest> {
  const first = new Map<string, CertificateRequest>();
  for (const request of requests) if (!first.has(request.host)) first.set(request.host, request);
  return first.values();
}
