/** The two messages of grpc.health.v1.Health/Check, in their frames: a zero byte (not compressed), u32 length, message. */

const FRAME_HEADER = 5;
/** Field 1 of both messages: of the request a text, of the answer an enumeration. */
const SERVICE_FIELD = 0x0a;
const STATUS_FIELD = 0x08;

/** Names of HealthCheckResponse.ServingStatus. */
const SERVING_STATUS = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];

/** HealthCheckRequest { string service = 1; } */
export function checkRequest(service: string): Buffer {
  const name = Buffer.from(service, "utf8");
  const message = name.length === 0 ? name : Buffer.concat([Buffer.of(SERVICE_FIELD, ...varint(name.length)), name]);
  const header = Buffer.alloc(FRAME_HEADER);
  header.writeUInt32BE(message.length, 1);
  return Buffer.concat([header, message]);
}

/**
 * The status of a framed HealthCheckResponse { ServingStatus status = 1; }: its name; undefined where the bytes are none.
 * An empty message has the status 0.
 */
export function servingStatus(frame: Buffer): string | undefined {
  if (frame.length < FRAME_HEADER || frame[0] !== 0) return undefined;
  const length = frame.readUInt32BE(1);
  if (frame.length !== FRAME_HEADER + length) return undefined;
  if (length === 0) return SERVING_STATUS[0];
  if (length !== 2 || frame[FRAME_HEADER] !== STATUS_FIELD) return undefined;
  return SERVING_STATUS[frame[FRAME_HEADER + 1]];
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest >>>= 7) bytes.push((rest & 127) | 128);
  return [...bytes, rest];
}
