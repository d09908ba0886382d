import type { FieldRecord } from "./field-record.js";

/**
 * What each field is for, as `kubectl explain` shows it. A key is the end of the way to the field; the longest that fits
 * counts.
 */
const DESCRIPTIONS: Readonly<Record<string, string>> = {
  "spec.ingressClassName":
    "Name of the IngressClass whose controller serves this object. Without one, the default class counts.",
  "spec.host": "Host name that the object answers for, in lower case. A leading *. stands for any number of labels.",
  "spec.listener": "Listeners to use instead of the ports 80 and 443.",
  "listener.http": "Name of the listener for HTTP.",
  "listener.https": "Name of the listener for HTTPS.",
  "spec.tls": "Certificate of the host, and what becomes of plain HTTP.",
  "spec.tls.secret":
    "Name of a Secret of type kubernetes.io/tls, or namespace/name where a ReferenceGrant allows it. Without one, or where it is missing, the default certificate is served.",
  "spec.tls.redirect": "Sends plain HTTP to HTTPS.",
  "tls.redirect.enable": "Whether requests are redirected. The default is false.",
  "tls.redirect.code": "Status of the redirect: 301 (the default), 302, 307 or 308.",
  "tls.redirect.basedOn":
    "What says that a request is plain HTTP: scheme (the default), or x-forwarded-proto behind another proxy.",
  policies: "Policies that guard the requests. While policies do not act, requests that they guard are answered 500.",
  "policies.name": "Name of the Policy.",
  "policies.namespace": "Namespace of the Policy; that of this object by default.",
  "http-snippets": "Refused: raw configuration from an object is how this family of controllers was taken over.",
  "server-snippets": "Refused: raw configuration from an object is how this family of controllers was taken over.",
  "location-snippets": "Refused: raw configuration from an object is how this family of controllers was taken over.",

  "spec.upstreams": "Services that requests can be sent to, each with a name of its own.",
  "upstreams.name": "Name of the upstream, by which actions refer to it.",
  "upstreams.service": "Name of a Service, or namespace/name where a ReferenceGrant allows it.",
  "upstreams.port": "Port of the Service.",
  "upstreams.subselector": "Labels by which pods are chosen among those of the Service.",
  "upstreams.lb-method":
    "How a peer is picked: round_robin (the default), least_conn, ip_hash, random, random two [least_conn], hash KEY [consistent] [bounded], chash KEY [bounded], maglev KEY [bounded]. KEY is text with variables such as $cookie_id.",
  "upstreams.fail-timeout":
    "Time within which max-fails failures take a peer out, and for which it stays out. The default is 10s.",
  "upstreams.max-fails": "Failures that take a peer out; 0 for never. The default is 1.",
  "upstreams.max-conns": "Requests under way that a peer may have; 0, the default, for any number.",
  "upstreams.keepalive": "Idle connections that are kept to the peers.",
  "upstreams.connect-timeout": "Longest time to connect to a peer. The default is 60s.",
  "upstreams.read-timeout": "Longest time between two reads from a peer. The default is 60s.",
  "upstreams.send-timeout": "Longest time between two writes to a peer. The default is 60s.",
  "upstreams.next-upstream":
    "What lets a request be tried at another peer: words of proxy_next_upstream, such as error, timeout, http_502, or off. The default is error timeout.",
  "upstreams.next-upstream-timeout": "Time within which another peer is tried; 0, the default, for any time.",
  "upstreams.next-upstream-tries": "Peers that are tried for one request; 0, the default, for all of them.",
  "upstreams.buffering": "Whether answers of peers are buffered.",
  "upstreams.client-max-body-size": "Largest body of a request, such as 8k or 1m; 0 for any size.",
  "upstreams.tls": "TLS towards the peers.",
  "upstreams.tls.enable": "Whether peers are spoken to over TLS. The default is false.",
  "upstreams.slow-start": "Time that a peer that is back takes to its full share, with round_robin and least_conn.",
  "upstreams.queue": "Requests that wait while every peer has max-conns requests under way.",
  "queue.size": "Requests that may wait.",
  "queue.timeout": "Longest time that one waits. The default is 60s.",
  "upstreams.use-cluster-ip": "Whether the cluster IP of the Service is used instead of its endpoints.",
  "upstreams.type": "Protocol of the peers: http (the default) or grpc.",
  "upstreams.backup": "Name of a Service whose peers are used when no other peer is left. Needs backupPort.",
  "upstreams.backupPort": "Port of the backup Service.",

  "upstreams.sessionCookie": "A cookie that keeps a client with its peer, whatever the method.",
  "sessionCookie.enable": "Whether the cookie is set and looked at. The default is false.",
  "sessionCookie.name": "Name of the cookie. Needed where it is switched on.",
  "sessionCookie.path": "Path attribute of the cookie.",
  "sessionCookie.expires":
    "How long browsers keep the cookie: a time, or max for as long as can be. By default until they are closed.",
  "sessionCookie.domain": "Domain attribute of the cookie.",
  "sessionCookie.httpOnly": "Whether scripts are kept from the cookie. The default is false.",
  "sessionCookie.secure": "Whether the cookie is for HTTPS only. The default is false.",
  "sessionCookie.samesite": "SameSite attribute of the cookie: strict, lax or none.",

  "upstreams.healthCheck": "Active checks of the peers.",
  "healthCheck.enable": "Whether peers are checked. The default is false.",
  "healthCheck.path": "Path and query that a probe asks for. The default is /.",
  "healthCheck.interval": "Time between two probes of a peer. The default is 5s.",
  "healthCheck.jitter": "Random time by which a probe may be late.",
  "healthCheck.fails": "Failures in a row that take a peer down. The default is 1.",
  "healthCheck.passes": "Passes in a row that bring a peer back. The default is 1.",
  "healthCheck.port": "Port that is probed; that of the peer by default.",
  "healthCheck.tls": "TLS of the probes; as for the upstream by default.",
  "healthCheck.tls.enable": "Whether probes go over TLS.",
  "healthCheck.connect-timeout": "Longest time to connect; that of the upstream by default.",
  "healthCheck.read-timeout": "Longest time until the head of the answer is there; that of the upstream by default.",
  "healthCheck.send-timeout": "Longest time to send the probe; that of the upstream by default.",
  "healthCheck.headers": "Headers of a probe.",
  "healthCheck.headers.name": "Name of the header. One that frames the message cannot be set.",
  "healthCheck.headers.value": "Value of the header, in ASCII.",
  "healthCheck.statusMatch":
    'Statuses that pass, such as "200", "! 500", "200-399" or "301 302 307". By default 2xx and 3xx.',
  "healthCheck.grpcStatus": "gRPC status of a service that does not know the check, by which it passes.",
  "healthCheck.grpcService": "Service that a gRPC probe asks about.",
  "healthCheck.mandatory": "Whether a peer gets no request before its first pass. The default is false.",
  "healthCheck.persistent": "Whether states stay when the check changes. Needs mandatory: true. The default is false.",
  "healthCheck.keepalive-time": "Time for which a connection is kept for further probes.",
  "healthCheck.type": "What a probe is: http (the default) or tcp. Upstreams of type grpc are asked by gRPC.",
  "healthCheck.panic":
    "Whether all peers are used when every one is down, instead of answering 503. The default is false.",

  "spec.routes": "What requests for the host do, by their path.",
  "spec.subroutes":
    "What requests for the delegated path do, by their path. A subroute stays inside of the path that is delegated.",
  path: "Path of the requests: /x (prefix), =/x (exact), ^~ /x (prefix that goes before regular expressions), ~ re, or ~* re (without regard to case).",
  route: "Delegates the path to a VirtualServerRoute: its name, or namespace/name.",
  matches:
    "Outcomes under conditions. The first match whose conditions all hold counts; without one, action or splits of the route.",
  "matches.conditions":
    "Conditions that must all hold. Each looks at exactly one of header, cookie, argument and variable.",
  "conditions.header": "Name of a header, without regard to case.",
  "conditions.cookie": "Name of a cookie.",
  "conditions.argument": "Name of an argument of the query.",
  "conditions.variable": "A variable such as $request_method, $scheme or $remote_addr.",
  "conditions.value":
    "What the value must be: text without regard to case, ~re, or ~*re; a leading ! negates it. The empty text stands for absent or empty.",
  errorPages: "Answers in place of those with certain statuses. Each is exactly one of return and redirect.",
  "errorPages.codes": "Statuses that are replaced.",
  "errorPages.return": "The answer.",
  "errorPages.redirect": "Where the client is sent.",

  splits: "Shares of the requests, each with an action. The weights add up to 100.",
  "splits.weight": "Share in percent. What has 0 is never chosen.",
  action: "What a request does: exactly one of pass, redirect, return and proxy.",
  "action.pass": "Name of the upstream that the request is sent to.",
  "action.redirect": "Where the client is sent.",
  "redirect.url": "Absolute URL. May use ${scheme}, ${http_x_forwarded_proto}, ${request_uri} and ${host}.",
  "redirect.code": "Status of the redirect: 301 (the default), 302, 307 or 308.",
  "action.return": "An answer that the proxy gives itself.",
  "return.code": "Status, 2xx, 4xx or 5xx. The default is 200.",
  "return.type": "Media type of the body. The default is text/plain.",
  "return.body": "The body. May use the variables of conditions, such as ${request_uri}.",
  "return.headers": "Headers of the answer.",
  "action.proxy": "Sends the request to an upstream, changed.",
  "proxy.upstream": "Name of the upstream.",
  "proxy.rewritePath":
    "Path for the upstream: in place of the prefix, or the whole path for exact and regular expression routes, where $1 to $9 are groups.",
  "proxy.requestHeaders": "Changes of the request's headers.",
  "requestHeaders.pass": "Whether the client's headers are passed on. The default is true.",
  "requestHeaders.set": "Headers that are set. An empty value takes the header away.",
  "proxy.responseHeaders": "Changes of the answer's headers.",
  "responseHeaders.hide": "Headers that are not passed on to the client.",
  "responseHeaders.pass": "Headers that are passed on although they would not be.",
  "responseHeaders.ignore": "Headers that have no effect on the proxy.",
  "responseHeaders.add": "Headers that are added to the answer.",
  "headers.name": "Name of the header. One that frames the message cannot be set.",
  "headers.value": "Value of the header. May use the variables of conditions.",
  "set.name": "Name of the header. One that frames the message cannot be set.",
  "set.value": "Value of the header. May use the variables of conditions.",
  "add.name": "Name of the header. One that frames the message cannot be set.",
  "add.value": "Value of the header. May use the variables of conditions.",
  "add.always": "Whether it is added whatever the status of the answer. The default is false.",
};

/** Looks descriptions up, and remembers which were of use. */
export class Descriptions {
  readonly #used = new Set<string>();

  /** Throws if the field has none. */
  readonly describe = ({ names, path }: FieldRecord): string => {
    for (let start = 0; start < names.length; start += 1) {
      const key = names.slice(start).join(".");
      if (!Object.hasOwn(DESCRIPTIONS, key)) continue;
      this.#used.add(key);
      return DESCRIPTIONS[key];
    }
    throw new Error(`${path} has no description`);
  };

  /** Descriptions of fields that nobody reads. */
  unused(): string[] {
    return Object.keys(DESCRIPTIONS).filter((key) => !this.#used.has(key));
  }
}
