import { readFileSync } from "node:fs";
import fc from "fast-check";
import { parseAllDocuments } from "yaml";
import { recogniseKind } from "../../controller/resources/object-ref.js";
import { parseObject } from "../../controller/resources/parse-object.js";
import type { Problem } from "../../controller/resources/problem.js";
import type { KubeClient, KubeObject } from "../real/kube/client.js";
import { patternChecker } from "../support/core.js";

/** The objects of a file of YAML. */
export function objectsOf(file: URL): KubeObject[] {
  return parseAllDocuments(readFileSync(file, "utf8")).map((document) => {
    if (document.errors.length > 0) throw document.errors[0];
    return document.toJS() as KubeObject;
  });
}

/** An object of each kind that has every field. */
export const EVERY_FIELD = objectsOf(new URL("every-field.yaml", import.meta.url));

export const isCustom = ({ apiVersion }: KubeObject) => apiVersion === "k8s.njet.org/v1";

/** The errors that the readers find. */
export function errorsOf(object: KubeObject): Problem[] {
  const kind = recogniseKind(object.apiVersion, object.kind)!;
  const { name, namespace = "default" } = object.metadata;
  const context = { checker: patternChecker(), crossNamespaceServices: true };
  const { problems } = parseObject({ kind, namespace, name }, object, context);
  return problems.filter(({ severity }) => severity === "error");
}

/** What the API server would say to a new object: undefined if it takes it, else why not. Nothing is stored. */
export async function refusal(client: KubeClient, object: KubeObject): Promise<string | undefined> {
  const plural = `${object.kind.toLowerCase()}s`;
  const path = `/apis/${object.apiVersion}/namespaces/${object.metadata.namespace ?? "default"}/${plural}?dryRun=All`;
  const { status, body } = await client.raw("POST", path, object);
  if (status === 201) return undefined;
  // 400: the object is no object at all.
  if (status !== 422 && status !== 400) throw new Error(`${status} ${JSON.stringify(body)}`);
  return String(body.message);
}

/** Pieces of what fields may hold: put together, they come near to what a pattern draws the line at. */
const PIECES = [
  ...'/=~*^ $.-_!;,@%&#?{}()[]"\\:+0159aAzZ\t\n\u0000\u007f\u00a0\u00e9\u2003\u{1f600}',
  ..."~*,^~,${,${host},${scheme},$uri,$arg_a,$http_x_y,$cookie_,$1,$0,$$,${http_X_forwarded_proto},%20,%2".split(","),
  ..."hash,chash,maglev,consistent,bounded,random,two,least_conn,round_robin,ip_hash,off,error,http_502,http_404".split(
    ",",
  ),
  ..."10s,5ms,1m,30s,2h,1y,7d,8k,2g,0,0s,max,200,404,200-399,! 500,1.2.3.4,*.,example.com,lax,None,http,grpc".split(
    ",",
  ),
  ..."text/plain,; charset=utf-8,https://,http://,a/b,/x,host,Host,Connection,te,expect,X-A,Cache-Control,$request_method".split(
    ",",
  ),
];

/** A text that is hard to tell good from bad. */
export const nearText = fc.array(fc.constantFrom(...PIECES), { maxLength: 5 }).map((parts) => parts.join(""));
