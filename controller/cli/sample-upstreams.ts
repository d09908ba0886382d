import { createServer, type Server } from "node:http";
import type { ObjectChange } from "../model/routing-model.js";

/** A place where a sample upstream is to answer, and what it calls itself. */
export interface SampleAddress {
  name: string;
  address: string;
  port: number;
}

const SERVICE_LABEL = "kubernetes.io/service-name";

interface SliceShape {
  metadata?: { labels?: Record<string, string> };
  ports?: { port?: number }[];
  endpoints?: { addresses?: string[] }[];
}

/** The loopback addresses that the EndpointSlices of the sample name. */
export function sampleAddresses(objects: readonly ObjectChange[]): SampleAddress[] {
  const found: SampleAddress[] = [];
  for (const { kind, name, object } of objects) {
    if (kind !== "EndpointSlice") continue;
    const slice = object as SliceShape;
    const service = slice.metadata?.labels?.[SERVICE_LABEL] ?? name;
    for (const { addresses } of slice.endpoints ?? []) {
      const address = addresses?.[0];
      const port = slice.ports?.[0]?.port;
      if (address?.startsWith("127.") && port !== undefined) found.push({ name: service, address, port });
    }
  }
  return found;
}

/** Opens a small server at each address. It says who it is and what it was asked. Rejects where one cannot be opened. */
export async function startSampleUpstreams(addresses: readonly SampleAddress[]): Promise<Server[]> {
  const servers: Server[] = [];
  try {
    for (const place of addresses) servers.push(await startSample(place));
  } catch (error) {
    for (const server of servers) server.close();
    throw error;
  }
  return servers;
}

function startSample({ name, address, port }: SampleAddress): Promise<Server> {
  const server = createServer((request, response) => {
    const body = { service: name, peer: `${address}:${port}`, method: request.method, target: request.url };
    response.setHeader("Content-Type", "application/json");
    response.end(`${JSON.stringify(body)}\n`);
    request.resume();
  });
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const why = error.code === "EADDRINUSE" ? "another program has the port" : error.message;
      reject(new Error(`the sample upstream ${name} cannot listen on ${address}:${port}: ${why}`));
    });
    server.listen(port, address, () => resolve(server));
  });
}
