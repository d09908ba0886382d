import { createHash } from "node:crypto";
import type { DynamicMap, MapValue } from "./api/index.js";

/** The maps of njet.conf that say which certificate a handshake gets: names of their variables. */
export const CERTIFICATE_MAPS = {
  certificate: "njet_certificate",
  key: "njet_certificate_key",
  /** Has no other value than the version of the table. It may be there where the others were refused: each map is taken by itself. */
  version: "njet_certificate_map",
} as const;

const SOURCE = "$ssl_server_name";
/** What a map has for all other names; no host of that name can stand there as it is. */
const OTHERS = "default";
/** Names that a map takes as they are, or that a pattern for one label can be made of. */
const NAME = /^(\*\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/;

/** Files of chain and key; the same one, where both stand in it. */
export interface FilePair {
  chain: string;
  key: string;
}

/** Which file each host has, as maps for the dynamic map API. */
export interface CertificateTable {
  /** Of the content: the same hosts and paths give the same version. */
  version: string;
  maps: DynamicMap[];
}

/** True for a host that can stand in the table; others are served by the default certificate there. */
export function canStand(host: string): boolean {
  return NAME.test(host);
}

/**
 * The table for hosts (exact, or `*.` and the rest, which is for one label) with the path of their file. Names are compared
 * without regard to case. Throws a RangeError for a host that can't stand in it.
 */
export function certificateTable(files: ReadonlyMap<string, string>, others: FilePair): CertificateTable {
  const entries = [...files].sort(([a], [b]) => (a < b ? -1 : 1));
  const values = (other: string): MapValue[] => [
    { valueFrom: OTHERS, valueTo: other },
    ...entries.map(([host, path]) => ({ valueFrom: pattern(host), valueTo: path })),
  ];
  const map = (name: string, list: MapValue[]): DynamicMap => ({ keyFrom: SOURCE, keyTo: `$${name}`, values: list });
  const tables = [
    map(CERTIFICATE_MAPS.certificate, values(others.chain)),
    map(CERTIFICATE_MAPS.key, values(others.key)),
  ];
  const version = createHash("sha256").update(JSON.stringify(tables)).digest("hex").slice(0, 16);
  return { version, maps: [...tables, map(CERTIFICATE_MAPS.version, [{ valueFrom: OTHERS, valueTo: version }])] };
}

/** Whether the maps of an OpenNJet are those of the table, in every value. */
export function isAmong(table: CertificateTable, maps: readonly DynamicMap[]): boolean {
  return table.maps.every(({ keyFrom, keyTo, values }) => {
    const found = maps.find((map) => map.keyTo === keyTo && map.keyFrom === keyFrom)?.values;
    if (found?.length !== values.length) return false;
    const there = new Map(found.map(({ valueFrom, valueTo }) => [valueFrom, valueTo]));
    return values.every(({ valueFrom, valueTo }) => there.get(valueFrom) === valueTo);
  });
}

function pattern(host: string): string {
  if (!canStand(host)) throw new RangeError(`can't stand in a map: ${JSON.stringify(host)}`);
  if (host === OTHERS) return `~(?i)^${host}$`;
  if (!host.startsWith("*.")) return host;
  // With `hostnames` OpenNJet would take any number of labels for the asterisk.
  return `~(?i)^[^.]+\\.${host.slice(2).replaceAll(".", "\\.")}$`;
}
