/** What nginx.conf says of headers: those that the peer gets from the proxy, and those that are about one connection only. */

/** What maps are asked about that have one answer. OpenNJet takes no map that is asked about less than two characters. */
export const NOTHING = '"none"';

/** Headers that the proxy says itself or that are about one connection, with the values of `location /`. */
export const HOP_HEADERS = [
  "Keep-Alive",
  "Proxy-Connection",
  "Proxy-Authenticate",
  "Proxy-Authorization",
  "HTTP2-Settings",
  "Trailer",
];

/** Headers of answers that are about the connection to the peer. */
export const HIDDEN_HEADERS = ["Proxy-Authenticate", "Trailer"];

/** Variables that Lua may write over; each has its value from a map that is only asked where Lua did not. */
export function headerVariables(trusting: boolean, peer: string): { maps: string[]; forwarded: [string, string][] } {
  const kept = (name: string, own: string): string =>
    trusting
      ? `map "$njet_trusted:$http_${name}" $njet_said_${name} { default ${own}; "~^1:." $http_${name}; }`
      : `map ${NOTHING} $njet_said_${name} { default ${own}; }`;
  const chain = trusting
    ? `map "$njet_trusted:$http_x_forwarded_for" $njet_said_x_forwarded_for { default ${peer}; "~^1:." "$http_x_forwarded_for, ${peer}"; }`
    : `map ${NOTHING} $njet_said_x_forwarded_for { default ${peer}; }`;
  const forwardedKept = trusting ? "$http_forwarded" : '""';
  return {
    maps: [
      kept("x_forwarded_proto", "$scheme"),
      kept("x_forwarded_host", "$http_host"),
      kept("x_forwarded_port", "$server_port"),
      chain,
      `map $http_x_request_id $njet_id { default $request_id; "" $request_id; "~^[\\x21-\\x7e]{1,128}$" $http_x_request_id; }`,
      `map ${trusting ? '"$njet_trusted"' : NOTHING} $njet_forwarded { default ""; 1 ${forwardedKept}; }`,
    ],
    forwarded: [
      ["Host", "host:$http_host"],
      ["X-Request-ID", "request_id:$njet_id"],
      ["X-Real-IP", "real_ip:$remote_addr"],
      ["X-Forwarded-For", trusting ? "forwarded_for:$njet_said_x_forwarded_for" : `forwarded_for:${peer}`],
      ["X-Forwarded-Proto", trusting ? "forwarded_proto:$njet_said_x_forwarded_proto" : "forwarded_proto:$scheme"],
      ["X-Forwarded-Host", trusting ? "forwarded_host:$njet_said_x_forwarded_host" : "forwarded_host:$http_host"],
      ["X-Forwarded-Port", trusting ? "forwarded_port:$njet_said_x_forwarded_port" : "forwarded_port:$server_port"],
    ],
  };
}
