/**
 * Questions: a request with the header `x-njet-decide: SECRET [RANDOM [NOW [HEADERS]]]` is not passed on, but answered with
 * what would be decided of it, as test/conformance/README.md has it. RANDOM and NOW are decimal words, by default 0 and the
 * time; HEADERS, a header map in hexadecimal, takes the place of the request's own headers and connection (`:authority`,
 * `:path`, `:scheme`, `:method`, `:protocol`, `:source`).
 */

import { I_SIZE } from "../../../assembly/balance/peer-set-layout";
import { ACTION_PROXY } from "../../../assembly/image/layout";
import { peer_done } from "../../../assembly/index";
import { D_ACTION, D_PEER, D_PEERS, X_NOW } from "../../../assembly/table/context";
import { addHeader, sendAnswer, startAnswer } from "./answer";
import { decide } from "./decide";
import { putDecision, putTooLong } from "./decision-line";
import { dropGrowing, growing, grownBytes, grownLength, putHex } from "./growing";
import { BUNDLE, CONTENT_TYPE, JSON_TYPE } from "./names";
import { knowsSecret } from "./options";
import { P_CHECKSUM, P_CONTEXT } from "./plugin";
import { question, questionLength, readAsked } from "./request";
import { take } from "./scratch";
import { setTime } from "./stream";
import { bytesOf, decimal, hexDigit, lengthOf } from "./text";

/** A word of the question at hand. */
let word: usize = 0;
let wordLength: u32 = 0;

/** Goes on to the next word; one that is not there is empty. */
function nextWord(end: usize): void {
  word += wordLength;
  if (word < end) word++;
  let stop = word;
  while (stop < end && load<u8>(stop) != 32) stop++;
  wordLength = <u32>(stop - word);
}

/** True if the request asks a question, and knows the secret. */
export function isQuestion(): bool {
  if (!question) return false;
  word = question;
  wordLength = 0;
  while (wordLength < questionLength && load<u8>(word + wordLength) != 32) wordLength++;
  return knowsSecret(word, wordLength);
}

/** Answers the question that `isQuestion` has found. 400 for one that can't be read. */
export function answerQuestion(plugin: usize): void {
  let context: usize = load<u32>(plugin, P_CONTEXT);
  let end = question + questionLength;
  nextWord(end);
  let random = decimal(word, wordLength, 0);
  nextWord(end);
  if (wordLength) store<u32>(context, decimal(word, wordLength, 0), X_NOW);
  else setTime(context);
  nextWord(end);
  startAnswer();
  if (wordLength && !readHeaders()) {
    sendAnswer(400, 0, 0);
    return;
  }
  let line = growing();
  if (!line) return;
  if (decide(context, random) < 0) putTooLong(line);
  else {
    putDecision(line, context);
    if (load<u32>(context, D_ACTION) == ACTION_PROXY) release(context);
  }
  let sum = growing();
  if (sum) {
    putHex(sum, load<u32>(plugin, P_CHECKSUM), 8);
    addHeader(bytesOf(BUNDLE), lengthOf(BUNDLE), grownBytes(sum), grownLength(sum));
    dropGrowing(sum);
  }
  addHeader(bytesOf(CONTENT_TYPE), lengthOf(CONTENT_TYPE), bytesOf(JSON_TYPE), lengthOf(JSON_TYPE));
  sendAnswer(200, grownBytes(line), grownLength(line));
  dropGrowing(line);
}

/** The peer that was picked gets no request. */
function release(context: usize): void {
  let peers: usize = load<u32>(context, D_PEERS);
  let tokens = (peers + load<u32>(peers, I_SIZE) + 3) & ~3;
  peer_done(context, load<u32>(tokens + ((<usize>load<u32>(context, D_PEER)) << 2)), 0);
}

function readHeaders(): bool {
  if (wordLength & 1) return false;
  let length = wordLength >> 1;
  let map = take(length);
  if (!map) return false;
  for (let i: u32 = 0; i < length; i++) {
    let high = hexDigit(load<u8>(word + i * 2));
    let low = hexDigit(load<u8>(word + i * 2 + 1));
    if (high > 15 || low > 15) return false;
    store<u8>(map + i, <u8>((high << 4) | low));
  }
  return readAsked(map, length);
}
