/** A DNS query with one question. */
export interface DnsQuery {
  readonly id: number;
  /** Lower case, without the last dot. */
  readonly name: string;
  readonly type: number;
  /** The question as it was sent: the answer repeats it. */
  readonly question: Buffer;
  readonly recursionDesired: boolean;
}

/** Response codes (RFC 1035, 4.1.1). */
export const RCODE = { none: 0, serverFailure: 2, nameError: 3, refused: 5 } as const;
export const TYPE_A = 1;
const CLASS_IN = 1;
const HEADER = 12;
/** The most bytes of an answer over UDP, because nginx's queries have no OPT record (RFC 1035, 4.2.1). */
const MOST_UDP = 512;
const FLAGS = { answer: 0x8000, authoritative: 0x0400, truncated: 0x0200, recursionDesired: 0x0100 } as const;

/** Reads a query. Returns `null` for every other message; such a message gets no answer. */
export function readQuery(message: Buffer): DnsQuery | null {
  if (message.length < HEADER || message.length > MOST_UDP) return null;
  const flags = message.readUInt16BE(2);
  const isQuery = (flags & FLAGS.answer) === 0 && (flags & 0x7800) === 0;
  if (!isQuery || message.readUInt16BE(4) !== 1) return null;
  const labels: string[] = [];
  let at = HEADER;
  for (;;) {
    const length = message[at];
    // A query's name is not compressed: a length above 63 would be a pointer.
    if (length === undefined || length > 63) return null;
    at += 1;
    if (length === 0) break;
    labels.push(message.subarray(at, at + length).toString('latin1'));
    at += length;
  }
  if (at + 4 > message.length || message.readUInt16BE(at + 2) !== CLASS_IN) return null;
  return {
    id: message.readUInt16BE(0),
    name: labels.join('.').toLowerCase(),
    type: message.readUInt16BE(at),
    question: message.subarray(HEADER, at + 4),
    recursionDesired: (flags & FLAGS.recursionDesired) !== 0,
  };
}

/**
 * The answer with A records that may be kept for `seconds`. With `overUdp`, an answer that is too long is sent without
 * records and marked as truncated, so that the client asks again over TCP.
 */
export function answerTo(
  query: DnsQuery,
  { code, addresses, seconds }: { code: number; addresses: readonly string[]; seconds: number },
  overUdp: boolean,
): Buffer {
  const records = addresses.map((address) => record(address, seconds));
  const size = HEADER + query.question.length + records.reduce((sum, { length }) => sum + length, 0);
  const isTruncated = overUdp && size > MOST_UDP;
  const header = Buffer.alloc(HEADER);
  header.writeUInt16BE(query.id, 0);
  const flags =
    FLAGS.answer |
    FLAGS.authoritative |
    (isTruncated ? FLAGS.truncated : 0) |
    (query.recursionDesired ? FLAGS.recursionDesired : 0);
  header.writeUInt16BE(flags | code, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(isTruncated ? 0 : records.length, 6);
  return Buffer.concat([header, query.question, ...(isTruncated ? [] : records)]);
}

/** An A record of the question's name. */
function record(address: string, seconds: number): Buffer {
  const bytes = Buffer.alloc(16);
  // A pointer to the question's name.
  bytes.writeUInt16BE(0xc000 | HEADER, 0);
  bytes.writeUInt16BE(TYPE_A, 2);
  bytes.writeUInt16BE(CLASS_IN, 4);
  bytes.writeUInt32BE(seconds, 6);
  bytes.writeUInt16BE(4, 10);
  for (const [index, part] of address.split('.').entries()) bytes[12 + index] = Number(part);
  return bytes;
}
