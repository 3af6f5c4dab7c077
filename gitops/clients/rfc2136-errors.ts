import { RetryableError, TerminalError } from '../../base/errors.ts';
import type { CommandError } from './command.ts';

/**
 * What a refusal means to an applier. Any `refused` may be due to a single name: if a server's policy allows a key
 * some names only, the server answers updates of other names as if the key were unknown.
 */
type Rfc2136Meaning = 'prerequisite' | 'refused';

/** The server refused the message. `code` is the name of its response code (RFC 2136 2.2, RFC 8945 5.3). */
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
const allowNames =
  'the server must let the key of DNS_TSIG_NAME transfer the zone, and update each name in it that sites use';

const REFUSALS: Readonly<Record<string, Refusal>> = {
  YXDOMAIN: changed,
  YXRRSET: changed,
  NXDOMAIN: changed,
  NXRRSET: changed,
  REFUSED: refused(allowNames),
  NOTAUTH: refused(`check that DNS_SERVER is the primary of DNS_ZONE; ${allow}`),
  NOTZONE: refused('a name lies outside DNS_ZONE'),
  FORMERR: refused('it cannot read the message'),
  NOTIMPL: refused('it accepts no dynamic updates; set DNS_SERVER to the primary'),
  BADKEY: refused(`check DNS_TSIG_NAME and DNS_TSIG_ALGORITHM; ${allowNames}`),
  BADSIG: refused('its key has another secret; check DNS_TSIG_SECRET_FILE'),
};

/** The response code in the output of knsupdate, and of kdig. */
const CODE = /status: ([A-Z]+)|replied with error '([A-Z]+)'/;

/**
 * The error for a failed program of Knot. Only a missing program and a refusal are final. A refusal may be unsigned: a
 * server can't sign with a key that it doesn't know. Anything else (no connection, a timeout, a wrong clock, SERVFAIL)
 * is transient, and an update may have been carried out anyway.
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
