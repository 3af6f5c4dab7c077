import { RetryableError, TerminalError } from '../base/errors.ts';
import type { CommandError } from './command.ts';

/**
 * What a refusal means to an applier. `refused` may be one name's fault, whatever the code: a server whose policy lets a
 * key write some names only answers for the others as if it knew no such key.
 */
type Rfc2136Meaning = 'prerequisite' | 'refused';

/** The server understood the message and says no. `code` is the response code's name (RFC 2136 2.2, RFC 8945 5.3). */
export class UpdateRefusal extends TerminalError {
  override name = 'UpdateRefusal';
  readonly code: string;
  readonly meaning: Rfc2136Meaning;
  constructor(code: string, { meaning, advice }: Refusal, options?: ErrorOptions) {
    super(`the DNS server answers ${code}: ${advice}`, options);
    this.code = code;
    this.meaning = meaning;
  }
}

interface Refusal {
  readonly meaning: Rfc2136Meaning;
  readonly advice: string;
}

const changed: Refusal = { meaning: 'prerequisite', advice: 'the name changed since it was observed' };
const refused = (advice: string): Refusal => ({ meaning: 'refused', advice });
const allow = 'the server must let the key of DNS_TSIG_NAME transfer and update the zone';

const REFUSALS: Readonly<Record<string, Refusal>> = {
  YXDOMAIN: changed,
  YXRRSET: changed,
  NXDOMAIN: changed,
  NXRRSET: changed,
  REFUSED: refused(`${allow}, and each of the names`),
  NOTAUTH: refused(`check that DNS_SERVER is the primary of DNS_ZONE; ${allow}`),
  NOTZONE: refused('a name lies outside DNS_ZONE'),
  FORMERR: refused('it cannot read the message'),
  NOTIMPL: refused('it takes no dynamic updates; name the primary in DNS_SERVER'),
  BADKEY: refused(`check DNS_TSIG_NAME and DNS_TSIG_ALGORITHM; ${allow}, and each of the names`),
  BADSIG: refused('its key has another secret; check DNS_TSIG_SECRET_FILE'),
};

/** As knsupdate shows the answer's header, and as kdig complains. */
const CODE = /status: ([A-Z]+)|replied with error '([A-Z]+)'/;

/**
 * The error for a program of Knot's that failed. Only a refusal is final, signed or not: a server can't sign for a key
 * that it doesn't take. Anything else (no connection, silence, a bad clock, SERVFAIL) may pass, and after an update
 * nobody knows whether it happened.
 */
export function rfc2136Error(failed: CommandError): RetryableError | TerminalError {
  const options = { cause: failed };
  if (isAbsent(failed.cause)) {
    return new TerminalError('kdig or knsupdate is not installed (knot-dnsutils)', options);
  }
  const [, ofUpdate, ofTransfer] = CODE.exec(`${failed.stdout}\n${failed.stderr}`) ?? [];
  const code = ofUpdate ?? ofTransfer ?? '';
  const refusal = REFUSALS[code];
  if (refusal !== undefined) return new UpdateRefusal(code, refusal, options);
  return new RetryableError(`the DNS server gives no usable answer: ${failed.message}`, options);
}

function isAbsent(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
}
