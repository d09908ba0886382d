import { createHash } from "node:crypto";
import { applyCertificate } from "./apply-certificate.js";
import { applyConfig } from "./apply-config.js";
import { applyLocation } from "./apply-location.js";
import { applyServer } from "./apply-server.js";
import { applyUpstream } from "./apply-upstream.js";
import type { Directive } from "./configuration-text.js";
import { parseConfiguration } from "./configuration-text.js";
import { type ParsedLocation, parseLocations } from "./directives.js";
import type { CertificateInfo, MapEntry, Message, Result } from "./messages.js";
import { bytesOf } from "./request-target.js";
import type { StaticConfiguration } from "./static-configuration.js";

export interface PlaneLocation extends ParsedLocation {
  isStatic: boolean;
  accessLog: boolean;
  counted: boolean;
}

export interface PlaneServer {
  listens: string[];
  names: string[];
  isStatic: boolean;
  tls?: CertificateInfo;
  /** The addresses that have it; all without. */
  tlsListens?: string[];
  /** Digests of certificates that came by `/v1/ssl`: they are refused for good. */
  hadCertificates: Set<string>;
  directives: Directive[];
  /** In the order of their creation. */
  locations: PlaneLocation[];
}

export type PlaneMap = Required<Omit<MapEntry, "type">> & { isStatic: boolean };

/** What a process of the data plane has in force: the privileged agent, or a worker. */
export class PlaneState {
  readonly servers: PlaneServer[] = [];
  readonly upstreams = new Map<string, { isStatic: boolean }>();
  readonly maps: PlaneMap[] = [];
  readonly mapBucket: number;
  readonly limits = new Map<string, Record<string, unknown>>();
  split?: { key: string; variable: string; shares: Record<string, number> };

  /** `prefix`: of OpenNJet, as it stands in messages. */
  constructor(
    configuration: StaticConfiguration,
    readonly prefix: string,
  ) {
    for (const { listens, names, tls, body } of configuration.servers) {
      const directives = parseConfiguration(bytesOf(body));
      const locations = parseLocations(directives.filter(({ name }) => name === "location"));
      this.servers.push({
        listens,
        names,
        isStatic: true,
        ...(tls && { tls: { cert_type: "rsa", certificate: tls.certificate, certificateKey: tls.key } }),
        ...(tls?.listens && { tlsListens: tls.listens }),
        hadCertificates: new Set(),
        directives: directives.filter(({ name }) => name !== "location"),
        locations: locations.map((one) => planeLocation(one, true)),
      });
    }
    for (const name of Object.keys(configuration.upstreams ?? {})) this.upstreams.set(name, { isStatic: true });
    for (const map of configuration.maps ?? []) this.maps.push(planeMap(map, true));
    this.mapBucket = configuration.mapBucket ?? 64;
    if (configuration.split) this.split = structuredClone(configuration.split);
  }

  /** Applies a change, or says why not. */
  apply(message: Message): Result {
    switch (message.about) {
      case "location":
        return applyLocation(this, message);
      case "server":
        return applyServer(this, message);
      case "upstream":
        return applyUpstream(this, message);
      case "certificate":
        return applyCertificate(this, message);
      case "config":
        return applyConfig(this, message.module, message.document);
    }
  }

  serverOf(address: string, name: string): PlaneServer | undefined {
    return this.servers.find(({ listens, names }) => listens.includes(address) && names.includes(name));
  }
}

export function planeLocation(location: ParsedLocation, isStatic: boolean): PlaneLocation {
  return { ...location, isStatic, accessLog: true, counted: true };
}

export function planeMap(
  { keyFrom, keyTo, values, isVolatile = false, hostnames = false }: MapEntry,
  isStatic: boolean,
): PlaneMap {
  return { keyFrom, keyTo, values, isVolatile, hostnames, isStatic };
}

/** Rule and name as OpenNJet compares them: without blanks. */
export function fullName(rule: string, name: string): string {
  return (rule + name).replaceAll(/\s+/g, "");
}

export function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
