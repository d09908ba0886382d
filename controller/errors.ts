/**
 * Every code that this project reports, in one place. ERRORS.md shows the same list to people; a test compares the two.
 * Codes are stable: scripts and alerts may rely on them. A code is never reused for another meaning.
 */
import type { CoreErrorCode } from "../core-wasm/binding/errors.js";

export { CoreError, type CoreErrorCode, type RegexProblem } from "../core-wasm/binding/errors.js";

/** What a code means, and what its reader can do. */
export interface ErrorEntry {
  meaning: string;
  remedy: string;
}

/** Problems of a single object, found by reading only that object. */
const OBJECT_ENTRIES = {
  API_VERSION: {
    meaning: "The object is of an API version that is not read.",
    remedy: "Use the version that the message names.",
  },
  ANNOTATION_INVALID: {
    meaning:
      "An annotation has a value that it cannot have: use-regex makes the Ingress Invalid, others have their default.",
    remedy: "Give it a value of the kind that the message describes.",
  },
  ANNOTATION_NO_EFFECT: {
    meaning: "An annotation of the NGINX family has no effect here, or none beside the others of its object.",
    remedy: "Remove it, do what the message says, or use a VirtualServer.",
  },
  CAPTURE_UNKNOWN: {
    meaning: "A text refers to a group that the pattern of its route does not have.",
    remedy: "Use $1 to $9, in rewritePath of a regex route only, and not beyond the number of groups.",
  },
  CLASS_CONFLICT: {
    meaning: "The class annotation and spec.ingressClassName name different classes; the annotation counts.",
    remedy: "Remove the annotation kubernetes.io/ingress.class.",
  },
  CONDITION_INVALID: {
    meaning: "A condition names a cookie, argument or variable in a way that cannot match.",
    remedy: "Follow the form that the message gives.",
  },
  DUPLICATE_NAME: {
    meaning: "Two entries of a list have the same name.",
    remedy: "Give each entry a name of its own.",
  },
  DUPLICATE_PATH: {
    meaning: "An object has the same path twice; in an Ingress the first one counts.",
    remedy: "Remove one of the two.",
  },
  DURATION_INVALID: {
    meaning: "A duration cannot be read.",
    remedy: "Write it as NGINX does: 500ms, 5s, 1m30s, 2h.",
  },
  ENUM_INVALID: {
    meaning: "A value is none of those that the field can have.",
    remedy: "Use one of the values that the message lists.",
  },
  FIELD_CONFLICT: {
    meaning: "Fields exclude each other, or exactly one of several is needed.",
    remedy: "Keep exactly one of the fields that the message lists.",
  },
  FIELD_NO_EFFECT: {
    meaning: "A field is correct, but has no effect beside the others of its object.",
    remedy: "Do what the message says, or remove the field.",
  },
  FIELD_REQUIRED: {
    meaning: "A field that is needed is missing or empty.",
    remedy: "Add the field.",
  },
  FIELD_TYPE: {
    meaning: "A field holds another type of value than it should.",
    remedy: "Use the type that the message names; numbers and booleans meant as text need quotes in YAML.",
  },
  FIELD_UNKNOWN: {
    meaning: "A field is not known, and has no effect; a ReferenceGrant with one grants nothing.",
    remedy: "Check the spelling, or remove it.",
  },
  HEADER_INVALID: {
    meaning: "A header name or value cannot be sent, or may not be set by an object.",
    remedy: "Use a header name of letters, digits and hyphens, and a value without control characters.",
  },
  HOST_INVALID: {
    meaning: "A host is no DNS name.",
    remedy: "Use lower-case labels joined by dots; a wildcard is *. followed by such a name.",
  },
  KIND_NOT_SERVED: {
    meaning: "Objects of this kind are recognised, but not served yet.",
    remedy: "Nothing to repair; the object has no effect in this version.",
  },
  LB_METHOD_INVALID: {
    meaning: "A load balancing method cannot be read.",
    remedy: "Use one of the methods that the message lists.",
  },
  LIMIT_EXCEEDED: {
    meaning: "A list or text is longer than is read, or an object has more problems than are listed.",
    remedy: "Split the object.",
  },
  NAME_INVALID: {
    meaning: "A name of an object, upstream, port or cookie has characters that it cannot have.",
    remedy: "Follow the form that the message gives.",
  },
  NOT_YET_ACTIVE: {
    meaning: "A field is correct, but does not act in this version.",
    remedy: "Do not rely on it yet.",
  },
  NUMBER_RANGE: {
    meaning: "A number is outside of its range.",
    remedy: "Use a whole number from the range that the message gives.",
  },
  PATH_INVALID: {
    meaning: "A path cannot be used.",
    remedy: "Start it with /, and leave out control characters and what the message names.",
  },
  PATH_NOT_A_PATTERN: {
    meaning: "A path looks like a pattern, but its pathType makes it plain text.",
    remedy: "Use pathType ImplementationSpecific where a pattern is meant.",
  },
  PATH_UNREACHABLE: {
    meaning: "A path can never match, because request paths are decoded and normalised before they are compared.",
    remedy: "Write the path as it is after decoding, with single slashes and without dot segments.",
  },
  POLICY_NOT_ENFORCED: {
    meaning: "A host or route names policies, which do not act in this version: it answers 500 instead of being open.",
    remedy: "Remove the policies if requests may pass without them.",
  },
  REGEX_INVALID: {
    meaning: "A pattern does not compile.",
    remedy: "Use RE2 syntax: no look-around and no back references. The message gives the position.",
  },
  RESOURCE_BACKEND: {
    meaning: "An Ingress names a backend by resource; only services can be backends.",
    remedy: "Use backend.service.",
  },
  SECRET_INVALID: {
    meaning: "A TLS Secret has no usable certificate chain and key.",
    remedy: "Store a PEM chain, leaf first, in tls.crt and its unencrypted PEM key in tls.key.",
  },
  SECRET_KEY_MISMATCH: {
    meaning: "The key of a TLS Secret does not belong to its first certificate.",
    remedy: "Store the key that the certificate was made with; the leaf comes first in the chain.",
  },
  SIZE_INVALID: {
    meaning: "A size cannot be read.",
    remedy: "Write it as NGINX does: 0, 512, 8k, 1m, 1g.",
  },
  SNIPPET_REFUSED: {
    meaning: "The object carries raw configuration text, which is never used.",
    remedy: "Remove it: text from objects in a configuration is how controllers of this family were taken over.",
  },
  SPLIT_WEIGHTS: {
    meaning: "The weights of a split do not add up to 100.",
    remedy: "Make the sum 100.",
  },
  STATUS_INVALID: {
    meaning: "A status code or status match cannot be read.",
    remedy:
      'Use codes from the range that the message gives; a match is like "200", "! 500", "200-399", "301 302 307".',
  },
  TEXT_INVALID: {
    meaning: "A text has a dollar sign or a character that it cannot have.",
    remedy: `Put variables in braces, such as \${host}, and leave out control characters.`,
  },
  UPSTREAM_UNKNOWN: {
    meaning: "An action names an upstream that the object does not have.",
    remedy: "Add it to upstreams of the same object, or correct the name.",
  },
  URL_INVALID: {
    meaning: "A redirect URL is not absolute.",
    remedy: `Start it with http://, https://, \${scheme}:// or \${http_x_forwarded_proto}://.`,
  },
  VARIABLE_UNKNOWN: {
    meaning: "A text uses a variable that is not allowed there.",
    remedy: "Use one of the variables that the message lists.",
  },
} as const satisfies Record<string, ErrorEntry>;

/** Problems between objects, found when the routing model is built. */
const MODEL_ENTRIES = {
  CERTIFICATE_NAME_MISMATCH: {
    meaning: "A certificate is not made for the host that it is used for; it is served all the same.",
    remedy: "Renew it with the host among its names.",
  },
  CERTIFICATE_TAKEN: {
    meaning: "An older object brings another certificate for the same host.",
    remedy: "Name the Secret in one object only.",
  },
  CLASS_NOT_SERVED: {
    meaning: "The object belongs to a class that this controller does not serve.",
    remedy: "Set spec.ingressClassName to a served class if the object should be served here.",
  },
  DEFAULT_TAKEN: {
    meaning: "An older Ingress is the default backend already.",
    remedy: "Keep one Ingress that has a default backend and no rules.",
  },
  ENDPOINT_IGNORED: {
    meaning: "An endpoint or port of an EndpointSlice cannot be used as a peer.",
    remedy: "Use IP addresses and ports from 1 to 65535.",
  },
  HOST_IN_USE: {
    meaning: "A change would take a host or path from a newer object that has it; only the webhook says so.",
    remedy: "Use another host or path, or remove the other object first.",
  },
  HOST_TAKEN: {
    meaning: "An older object has the host.",
    remedy: "Use another host, or remove one of the objects.",
  },
  PATH_TAKEN: {
    meaning: "Another object has the same path on the same host.",
    remedy: "Use another path, or remove one of the two.",
  },
  REFERENCE_NOT_GRANTED: {
    meaning: "An object refers to one of another namespace without a grant; the reference does not act.",
    remedy: "Create the ReferenceGrant that the message shows, in the namespace that it names.",
  },
  REFERENCE_SWITCHED_OFF: {
    meaning: "An object refers to one of another namespace, and such references are switched off.",
    remedy: "Keep both in one namespace, or change the option that the message names.",
  },
  ROUTE_HOST_MISMATCH: {
    meaning: "A VirtualServerRoute has another host than the VirtualServer that delegates to it.",
    remedy: "Give both the same spec.host.",
  },
  ROUTE_MISSING: {
    meaning: "A route delegates to a VirtualServerRoute that does not exist or is not served; its path answers 503.",
    remedy: "Create or repair the VirtualServerRoute, or remove the route.",
  },
  ROUTE_NOT_REFERENCED: {
    meaning: "No served VirtualServer delegates to the VirtualServerRoute.",
    remedy: "Name it in routes[].route of a VirtualServer with the same host.",
  },
  SECRET_MISSING: {
    meaning: "A TLS Secret that an object names does not exist; the default certificate is served.",
    remedy: "Create a Secret of type kubernetes.io/tls with the name that the message gives.",
  },
  SECRET_UNUSABLE: {
    meaning: "A Secret that an object names is not a good TLS Secret; the default certificate is served.",
    remedy: "See the problems of the Secret.",
  },
  SERVICE_EXTERNAL_NAME: {
    meaning: "A service is of type ExternalName, which has no endpoints; its routes answer 503.",
    remedy: "Use a service with endpoints.",
  },
  SERVICE_MISSING: {
    meaning: "A service that an object names does not exist; its routes answer 503.",
    remedy: "Create the service, or correct the name.",
  },
  SERVICE_PORT_MISSING: {
    meaning: "A service does not have the port that an object names; its routes answer 503.",
    remedy: "Use a port number or port name of the service.",
  },
  SUBROUTE_OUTSIDE: {
    meaning: "A subroute lies outside of the path that is delegated to its VirtualServerRoute.",
    remedy: "Start its path with the delegated prefix; for = and regex routes use the very same path.",
  },
} as const satisfies Record<string, ErrorEntry>;

/** Problems of files that hold objects. */
const FILE_ENTRIES = {
  FILE_LIMIT: {
    meaning: "A file is larger, or refers to itself more often, than is read; its last good state stays in force.",
    remedy: "Split the file; YAML aliases are limited to 100 uses.",
  },
  FILE_NO_OBJECT: {
    meaning: "A document has no apiVersion and kind, so it is no object; it is passed over.",
    remedy: "Add apiVersion and kind, or keep files of another kind in another folder.",
  },
  FILE_OBJECT: {
    meaning: "An object has no usable metadata.name, or a metadata.namespace that is none.",
    remedy: "Make both of lower-case letters, digits, hyphens and dots.",
  },
  FILE_SYNTAX: {
    meaning: "A file is no correct YAML or JSON; its last good state stays in force.",
    remedy: "Repair the file; the message gives the line.",
  },
  FILE_UNREADABLE: {
    meaning: "A file or folder cannot be read; its last good state stays in force.",
    remedy: "Check that it exists and its permissions.",
  },
  OBJECT_DUPLICATE: {
    meaning: "An object stands in more than one place; the first one, by file name and position, counts.",
    remedy: "Keep one of them.",
  },
} as const satisfies Record<string, ErrorEntry>;

/** Errors of the core: a wrong image, source or call, never a request. */
const CORE_ENTRIES = {
  CORE_UNREADABLE: {
    meaning: "core.wasm could not be fetched or compiled.",
    remedy: "Check its address; where a runtime compiles nothing, hand in a WebAssembly.Module.",
  },
  CORE_ABI_VERSION: {
    meaning: "The core has another ABI version than its binding.",
    remedy: "Use core.wasm and the binding of one release.",
  },
  CORE_IMAGE_TRUNCATED: {
    meaning: "An image or bundle is shorter than its header says.",
    remedy: "Compile it again; look for an incomplete copy.",
  },
  CORE_IMAGE_MAGIC: { meaning: "The bytes are no image or bundle.", remedy: "Check which file or message was loaded." },
  CORE_IMAGE_VERSION: {
    meaning: "An image or bundle has a format version that this core does not know.",
    remedy: "Compile it with the same release as the core that loads it.",
  },
  CORE_IMAGE_CHECKSUM: {
    meaning: "An image or bundle was changed after it was compiled.",
    remedy: "Compile it again.",
  },
  CORE_IMAGE_CORRUPT: {
    meaning: "An image or bundle has offsets or counts that contradict each other.",
    remedy: "Compile it again; please report it if the image came from this project.",
  },
  CORE_SOURCE_INVALID: {
    meaning: "The rules or peers given to the core cannot be compiled.",
    remedy: "See the message; objects that pass lint never cause it, so please report it.",
  },
  CORE_LIMIT: {
    meaning: "The rules of a host or the peers of an upstream exceed a limit of the core.",
    remedy: "Split the host or the upstream; the message gives the limit.",
  },
  CORE_MEMORY: {
    meaning: "The core has no memory left.",
    remedy: "Give the process more memory, or serve fewer rules.",
  },
  CORE_IMAGE_UNSUPPORTED: {
    meaning: "An image has a setting that must be understood and that this core does not know.",
    remedy: "Use the core and the compiler of one release, or a newer core.",
  },
  CORE_POINTER: {
    meaning: "A pointer or length lies outside of the core's memory.",
    remedy: "Check the host program.",
  },
  CORE_STATE: {
    meaning: "A call came at the wrong time, such as resume without a pending decision.",
    remedy: "Check the host program.",
  },
} as const satisfies Record<CoreErrorCode, ErrorEntry>;

const PROXY_ENTRIES = {
  PROXY_CERTIFICATE_INVALID: {
    meaning: "The proxy cannot use a certificate; the last good one of its host stays in force.",
    remedy: "Look at the Secret: chain and key must be PEM that OpenSSL accepts.",
  },
  PROXY_UNSUPPORTED: {
    meaning: "The proxy cannot do what an object asks for; the last good state of that piece stays in force.",
    remedy: "Use another proxy, or leave the setting out.",
  },
  PROXY_LOCATIONS_FULL: {
    meaning: "A host asks for more dynamic locations of OpenNJet than there is room for; its last good state stays.",
    remedy:
      "Use the carrier core, which has no limit, fewer rules, or a higher --max-locations; when others go, it is served.",
  },
  PROXY_CERTIFICATES_FULL: {
    meaning:
      "OpenNJet's map of certificates has room for no more hosts; this one is served with what it had, or the default certificate.",
    remedy:
      "Use the carrier core, which has no limit, or one certificate for a wildcard host; when others go, it has its own.",
  },
  PROXY_CERTIFICATE_MAP_REFUSED: {
    meaning:
      "OpenNJet refuses the map of certificates that names this host; the host is served with what it had, or the default certificate.",
    remedy:
      "See the message and the log of OpenNJet. The map is sent again and again; with the next change after it was taken the status says so.",
  },
  PROXY_BALANCER_LIMIT: {
    meaning:
      "The balancer that OpenNJet brings serves an upstream, but not in all that it asks for; the message says what.",
    remedy: "Use --balancer own, or the carrier core.",
  },
  PROXY_STATE_FULL: {
    meaning: "The memory that the workers of NGINX share has no room for a piece; its last good state stays in force.",
    remedy: "Give it more with --nginx-state-size, or remove objects.",
  },
  PROXY_STEP_FAILED: {
    meaning: "A step of a plan failed; the last good state of that piece stays in force.",
    remedy: "See the message; the next change of the object tries again.",
  },
} as const satisfies Record<string, ErrorEntry>;

/** What is in the way of starting NGINX or OpenNJet. */
const NGINX_ENTRIES = {
  NGINX_MISSING: {
    meaning: "No NGINX with the Lua module is installed, and Debian's packages cannot be unpacked.",
    remedy: "Install NGINX with lua-nginx-module, lua-resty-core and lua-cjson, or name one with --nginx.",
  },
  NGINX_UNUSABLE: {
    meaning: "The NGINX that --nginx names lacks what the message says.",
    remedy: "Install it, or name another NGINX.",
  },
  NGINX_CORE_MISSING: {
    meaning: "The core is not there as native code, and cannot be built.",
    remedy: "Install a C compiler and wabt (wasm2c), or bring the library along: npm run build:native.",
  },
  NGINX_NOT_ANSWERING: {
    meaning: "NGINX or OpenNJet does not start, or nothing answers on the control socket that --attach names.",
    remedy: "The message has what it said; for --attach, check the socket and the token beside it.",
  },
  OPENNJET_MISSING: {
    meaning: "There is no OpenNJet where --opennjet-prefix or NJET_PREFIX says.",
    remedy: "Install OpenNJet, and name the folder that has sbin/njet.",
  },
  OPENNJET_UNUSABLE: {
    meaning: "The installation of OpenNJet lacks the files that the message lists, or does not run.",
    remedy: "Build it with these modules and with LuaJIT, lua-resty-core and lua-cjson.",
  },
} as const satisfies Record<string, ErrorEntry>;

/** Failures of a call of OpenNJet's APIs. */
const OPENNJET_ENTRIES = {
  OPENNJET_ANSWER_INVALID: {
    meaning: "What answered is none of OpenNJet's APIs, or of a release that is not known; the change is verified.",
    remedy: "Check the address of the control server, and its release.",
  },
  OPENNJET_BODY_TOO_LARGE: {
    meaning: "A change is larger than the API takes; it was not applied.",
    remedy: "Split it; for maps, raise client_max_body_size of the control server.",
  },
  OPENNJET_CERTIFICATE_REPEATED: {
    meaning: "The server had this certificate before, and OpenNJet refuses it for good.",
    remedy: "Go back to older certificates through the map of files.",
  },
  OPENNJET_CODE_UNKNOWN: {
    meaning: "OpenNJet answered with a code that is not documented; the change is verified.",
    remedy: "See the message, and OpenNJet's error log.",
  },
  OPENNJET_CONNECTION_LOST: {
    meaning: "The connection ended, or no answer came in time; the change may be in force, and is verified.",
    remedy: "See whether OpenNJet runs and how busy it is.",
  },
  OPENNJET_EXISTS: {
    meaning: "There is an object of this name already.",
    remedy: "Remove it first; it may be left from a change that was given up.",
  },
  OPENNJET_JSON_REFUSED: {
    meaning: "OpenNJet can't read the change as JSON of its form.",
    remedy: "Use a release of OpenNJet that is known to work; please report it.",
  },
  OPENNJET_MEMORY: {
    meaning: "OpenNJet has no memory for the change, which may be in force in part.",
    remedy: "Give it more memory, and shared_slab_pool_size.",
  },
  OPENNJET_MODULE_NOT_LOADED: {
    meaning: "The data plane does not have the module that the change needs.",
    remedy: "Load it, as deploy/opennjet does.",
  },
  OPENNJET_NOT_ALLOWED: {
    meaning: "OpenNJet does not allow the change of this object: it is in use, or stands in the configuration.",
    remedy: "See the message.",
  },
  OPENNJET_NOT_FOUND: {
    meaning: "There is no object of this name.",
    remedy: "Nothing, where it was to be removed; otherwise check the name and the configuration.",
  },
  OPENNJET_NOT_REACHABLE: {
    meaning: "Nothing answers at the address of the control server; nothing was sent.",
    remedy: "Start OpenNJet, or correct the address.",
  },
  OPENNJET_PARAMETER: {
    meaning: "A parameter of the change has a value that it cannot have.",
    remedy: "See the message.",
  },
  OPENNJET_PARTLY_APPLIED: {
    meaning: "Parts of the change are in force, others are not; it is verified.",
    remedy: "See the message for the parts that were refused.",
  },
  OPENNJET_REFUSED: {
    meaning: "OpenNJet refuses the change for the reason in the message; what was in force stays.",
    remedy: "See the message.",
  },
  OPENNJET_REQUEST_REFUSED: {
    meaning: "The control server refuses the request as such: a verb or a field that this release does not know.",
    remedy: "Use a release of OpenNJet that is known to work.",
  },
  OPENNJET_SERVER_FAILURE: {
    meaning: "The control server failed; the change may be in force, and is verified.",
    remedy: "See OpenNJet's error log.",
  },
  OPENNJET_SHUTTING_DOWN: {
    meaning: "OpenNJet is ending, or reading its configuration anew.",
    remedy: "Nothing; the change is made again afterwards.",
  },
  OPENNJET_TIMEOUT: {
    meaning: "OpenNJet's agent did not answer within 2 s; the change may come into force later, and is verified.",
    remedy: "Nothing, if it happens at times; otherwise load fewer modules, or hold fewer dynamic objects.",
  },
  OPENNJET_UPSTREAM_REFUSED: {
    meaning: "The API of upstream members refuses the change.",
    remedy: "See the message; the word in parentheses is OpenNJet's.",
  },
} as const satisfies Record<string, ErrorEntry>;

/** Codes of a failed call of OpenNJet's APIs. */
export type OpenNjetErrorCode = keyof typeof OPENNJET_ENTRIES;

/** Codes with which a proxy refuses a step. */
export type ProxyErrorCode = keyof typeof PROXY_ENTRIES;

/** All codes, in the order in which ERRORS.md lists them. */
export const ERROR_SECTIONS = [
  { title: "Problems of an object", entries: OBJECT_ENTRIES },
  { title: "Problems between objects", entries: MODEL_ENTRIES },
  { title: "Problems of files", entries: FILE_ENTRIES },
  { title: "Errors of a proxy", entries: PROXY_ENTRIES },
  { title: "Errors of starting NGINX or OpenNJet", entries: NGINX_ENTRIES },
  { title: "Errors of OpenNJet's APIs", entries: OPENNJET_ENTRIES },
  { title: "Errors of the core", entries: CORE_ENTRIES },
] as const;

/** Codes of problems that an object can have; those of a proxy and of the core, where the proxy refuses a part of it. */
export type ProblemCode =
  | keyof typeof OBJECT_ENTRIES
  | keyof typeof MODEL_ENTRIES
  | "OBJECT_DUPLICATE"
  | ProxyErrorCode
  | CoreErrorCode;

const PROBLEM_ENTRIES = [OBJECT_ENTRIES, MODEL_ENTRIES, PROXY_ENTRIES, CORE_ENTRIES];

/** Whether a code, which may come from elsewhere, is one that a problem of an object can have. */
export function isProblemCode(code: string): code is ProblemCode {
  return code === "OBJECT_DUPLICATE" || PROBLEM_ENTRIES.some((entries) => Object.hasOwn(entries, code));
}

/** Codes of problems that a file can have. */
export type FileProblemCode = keyof typeof FILE_ENTRIES;

/** What to do about a problem of an object. */
export function remedyOf(code: ProblemCode): string {
  return REMEDIES.get(code) ?? "";
}

const REMEDIES: ReadonlyMap<string, string> = new Map(
  ERROR_SECTIONS.flatMap(({ entries }) => Object.entries(entries).map(([code, { remedy }]) => [code, remedy] as const)),
);
