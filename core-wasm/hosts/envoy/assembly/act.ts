/** Does with a request what was decided, and with its answer what the decision asks for. */
import {
  I_FLAGS,
  I_KEY,
  I_KEY_LENGTH,
  I_MAX_CONNS,
  I_MAX_FAILS,
  I_METHOD,
  I_SIZE,
  METHOD_LEAST_CONN,
  METHOD_RANDOM_TWO,
  P_ID_LENGTH,
  P_SESSION,
  peerAt,
  SET_BOUNDED,
  SET_STICKY,
} from "../../../assembly/balance/peer-set-layout";
import { ACTION_PROXY, ACTION_REDIRECT, TAG_ERROR_RETURN } from "../../../assembly/image/layout";
import {
  D_ACTION,
  D_HASH,
  D_MARKS,
  D_PEER,
  D_PEERS,
  D_SETTINGS_LENGTH,
  D_STATUS,
  D_TEXT,
  D_TEXT_LENGTH,
  D_TYPE,
  D_TYPE_LENGTH,
  MARK_HASHED,
  MARK_SESSION,
  X_INPUT,
} from "../../../assembly/table/context";
import {
  addHeader,
  addKeptHeaders,
  isPlainStatus,
  keptValue,
  nextKept,
  sendAnswer,
  sendErrorPage,
  startAnswer,
} from "./answer";
import { isRenewed, putCookie } from "./cookie";
import { D_NAME_LENGTH, D_TRANSPORT } from "./description";
import { setDestination } from "./destination";
import { clearGrowing, dropGrowing, growing, grownBytes, grownLength, putNumber } from "./growing";
import { checkedName, checkName, cleanLength, cleanStart, cleanValue } from "./header-text";
import {
  addNamedHeader,
  getHeader,
  getProperty,
  givenBytes,
  givenLength,
  REQUEST,
  RESPONSE,
  removeNamedHeader,
  setHeader,
  timeNow,
} from "./host";
import {
  CLUSTER,
  CODE_DETAILS,
  CONTENT_TYPE,
  clusterOf,
  HASH,
  LOCATION,
  NO_HEALTHY_UPSTREAM,
  OVERFLOW,
  PATH,
  PEER,
  SET_COOKIE,
  STATUS,
  STREAM_IDLE,
  UPSTREAM,
  VIA_UPSTREAM,
} from "./names";
import { byUpstream } from "./options";
import { P_CONTEXT, P_DESCRIPTIONS } from "./plugin";
import { hostLength, targetLength } from "./request";
import {
  applySettings,
  FLAG_ALWAYS,
  firstSetting,
  K_FLAGS,
  K_NAME,
  K_NAME_LENGTH,
  K_TAG,
  K_VALUE_LENGTH,
  keep,
  keepSetting,
  nextSetting,
  TAG_ADD_RESPONSE,
  TAG_COOKIE,
  TAG_HIDE_RESPONSE,
} from "./settings";
import { S_COUNTED, S_FAILED, S_FAILURES_COUNT, S_KEPT, S_TOKEN } from "./stream";
import { beginsWith, bytesOf, decimal, isText, lengthOf } from "./text";
import { mapGet } from "./word-map";

/** Of `proxy_on_request_headers` and the like: go on, or stop because an answer has been sent. */
export const CONTINUE: u32 = 0;
export const PAUSE: u32 = 1;

/** Carries out the last decision. */
export function act(stream: usize, plugin: usize): u32 {
  let context: usize = load<u32>(plugin, P_CONTEXT);
  if (load<u32>(context, D_ACTION) == ACTION_PROXY) {
    passOn(stream, plugin, context);
    return CONTINUE;
  }
  answer(context);
  return PAUSE;
}

function answer(context: usize): void {
  let status = load<u32>(context, D_STATUS);
  let kept = growing();
  startAnswer();
  if (kept) {
    firstSetting(context);
    while (nextSetting()) keepSetting(context, kept);
    let isPage = load<u32>(context, D_ACTION) != ACTION_REDIRECT && !load<u32>(context, D_TYPE_LENGTH);
    if (isPage && sendErrorPage(kept, status)) {
      dropGrowing(kept);
      return;
    }
    addKeptHeaders(kept, status);
  }
  let text: usize = load<u32>(context, D_TEXT);
  let length = load<u32>(context, D_TEXT_LENGTH);
  let typeLength = load<u32>(context, D_TYPE_LENGTH);
  if (load<u32>(context, D_ACTION) == ACTION_REDIRECT) {
    addHeader(bytesOf(LOCATION), lengthOf(LOCATION), text, length);
    length = 0;
  } else if (typeLength)
    addHeader(bytesOf(CONTENT_TYPE), lengthOf(CONTENT_TYPE), load<u32>(context, D_TYPE), typeLength);
  else length = 0;
  sendAnswer(status, length ? text : 0, length);
  dropGrowing(kept);
}

/** Sends the request on to the peer that the core has picked. */
function passOn(stream: usize, plugin: usize, context: usize): void {
  let peers: usize = load<u32>(context, D_PEERS);
  let index = load<u32>(context, D_PEER);
  let description: usize = mapGet(load<u32>(plugin, P_DESCRIPTIONS), <u32>peers);
  let cookie = description && load<u32>(description, D_NAME_LENGTH) ? description : 0;
  if (load<u32>(context, D_SETTINGS_LENGTH) || cookie) change(stream, context, peers, cookie);
  let text: usize = load<u32>(context, D_TEXT);
  let length = load<u32>(context, D_TEXT_LENGTH);
  let given: usize = load<u32>(context, X_INPUT) + ((hostLength + 3) & ~3);
  if (text != given || length != targetLength) setHeader(REQUEST, PATH, text, length);
  let peer = peerAt(peers, index);
  let id = peers + load<u32>(peer);
  let idLength: u32 = load<u8>(peer, P_ID_LENGTH);
  if (byUpstream) {
    setHeader(REQUEST, CLUSTER, peers + load<u32>(peers, I_KEY), load<u32>(peers, I_KEY_LENGTH));
    setHash(context);
    setHeader(REQUEST, PEER, id, idLength);
  } else {
    let cluster = clusterOf(description ? load<u32>(description, D_TRANSPORT) : 0);
    setHeader(REQUEST, CLUSTER, bytesOf(cluster), lengthOf(cluster));
    setDestination(id, idLength);
  }
  if (!isCounted(peers)) return;
  store<u32>(stream, load<u32>(((peers + load<u32>(peers, I_SIZE) + 3) & ~3) + ((<usize>index) << 2)), S_TOKEN);
  store<u32>(stream, 1, S_COUNTED);
  store<u32>(stream, load<u32>(peers, I_MAX_FAILS) ? 1 : 0, S_FAILURES_COUNT);
}

/** True if the core is to hear of the end of a request. */
function isCounted(peers: usize): bool {
  let method: u32 = load<u8>(peers, I_METHOD);
  if (method == METHOD_LEAST_CONN || method == METHOD_RANDOM_TWO) return true;
  return (
    (load<u8>(peers, I_FLAGS) & <u8>SET_BOUNDED) != 0 ||
    load<u32>(peers, I_MAX_FAILS) + load<u32>(peers, I_MAX_CONNS) > 0
  );
}

/** Header changes of the request; what is to be done to the answer is kept with the stream. */
function change(stream: usize, context: usize, peers: usize, cookie: usize): void {
  let kept = growing();
  if (!kept) return;
  if (cookie && load<u8>(peers, I_FLAGS) & <u8>SET_STICKY) keepCookie(context, kept, peers, cookie);
  applySettings(context, kept);
  if (grownLength(kept)) store<u32>(stream, <u32>kept, S_KEPT);
  else dropGrowing(kept);
}

function keepCookie(context: usize, kept: usize, peers: usize, description: usize): void {
  if (!(load<u32>(context, D_MARKS) & MARK_SESSION) && !isRenewed(description)) return;
  let session = load<u32>(peerAt(peers, load<u32>(context, D_PEER)), P_SESSION);
  let text = growing();
  if (!text) return;
  putCookie(text, description, session, timeNow());
  keep(kept, TAG_COOKIE, 0, bytesOf(SET_COOKIE), lengthOf(SET_COOKIE), grownBytes(text), grownLength(text));
  dropGrowing(text);
}

const hashText = growing();

function setHash(context: usize): void {
  if (!(load<u32>(context, D_MARKS) & MARK_HASHED)) {
    // One that the client has made up must not count.
    removeNamedHeader(REQUEST, bytesOf(HASH), lengthOf(HASH));
    return;
  }
  clearGrowing(hashText);
  putNumber(hashText, load<u32>(context, D_HASH));
  setHeader(REQUEST, HASH, grownBytes(hashText), grownLength(hashText));
}

/** Whether an answer that Envoy gives in the peer's place tells of a failure of the peer. */
const INNOCENT: u32 = 0;
const FAILED: u32 = 1;
/** Unless the status is 408: that is Envoy's for a time that is over while the client still owes a part of its request. */
const UNLESS_LATE: u32 = 2;
/** If the status is 504, Envoy's for such a time when the client had sent everything. */
const IF_GATEWAY: u32 = 3;

/** By the details of an answer. What the client did, and what a limit of Envoy's own refused, is nothing about the peer. */
function blameOf(details: usize, length: u32): u32 {
  if (beginsWith(details, length, UPSTREAM)) return beginsWith(details, length, OVERFLOW) ? INNOCENT : UNLESS_LATE;
  if (isText(details, length, NO_HEALTHY_UPSTREAM)) return FAILED;
  return isText(details, length, STREAM_IDLE) ? IF_GATEWAY : INNOCENT;
}

/** Changes the answer of a stream that is to be changed, or puts an error page in its place. */
export function changeAnswer(stream: usize): u32 {
  let kept: usize = load<u32>(stream, S_KEPT);
  let failures = load<u32>(stream, S_FAILURES_COUNT);
  if (!kept && !failures) return CONTINUE;
  getProperty(CODE_DETAILS);
  let ofPeer = isText(givenBytes(), givenLength(), VIA_UPSTREAM);
  let blame = ofPeer ? INNOCENT : blameOf(givenBytes(), givenLength());
  if (!kept && blame == INNOCENT) return CONTINUE;
  getHeader(RESPONSE, STATUS);
  let status = decimal(givenBytes(), givenLength(), 0);
  if (blame == FAILED || (blame == UNLESS_LATE && status != 408) || (blame == IF_GATEWAY && status == 504)) {
    store<u32>(stream, 1, S_FAILED);
  }
  if (!kept) return CONTINUE;
  // Sent once: a page is not replaced by another one.
  store<u32>(stream, 0, S_KEPT);
  let action = CONTINUE;
  if (status >= 200 && sendErrorPage(kept, status)) action = PAUSE;
  else if (ofPeer) changeHeaders(kept, status);
  dropGrowing(kept);
  return action;
}

function changeHeaders(kept: usize, status: u32): void {
  let end = grownBytes(kept) + grownLength(kept);
  for (let at = grownBytes(kept); at < end; at = nextKept(at)) {
    let tag = load<u32>(at, K_TAG);
    if (tag >= TAG_ERROR_RETURN) continue;
    let nameLength = load<u32>(at, K_NAME_LENGTH);
    if (!checkName(at + K_NAME, nameLength)) continue;
    if (tag == TAG_HIDE_RESPONSE) removeNamedHeader(RESPONSE, checkedName, nameLength);
    else if (
      tag == TAG_COOKIE ||
      (tag == TAG_ADD_RESPONSE && (load<u32>(at, K_FLAGS) & FLAG_ALWAYS || isPlainStatus(status)))
    ) {
      cleanValue(keptValue(at), load<u32>(at, K_VALUE_LENGTH));
      if (cleanLength) addNamedHeader(RESPONSE, checkedName, nameLength, cleanStart, cleanLength);
    }
  }
}
