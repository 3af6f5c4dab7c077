import { consentState } from '../../plugins/consent.ts';
import type { OriginRequest } from '../../plugins/contract.ts';
import type { Notes } from './request-record.ts';

/** The address of hits of GA4's web protocol, below any path (docs/facts.md, Paths). */
const HIT = /^[^?]*\/g\/(?:s\/)?collect(?:\?|$)/;
/** The addresses of hits of all protocols, whose clients in a container are usual. */
const ANY_HIT = /^[^?]*\/(?:[gjr]|g\/s|mp)\/collect(?:\?|$)/;
/** What an answer to a hit means, by status: the limits of the hops are in docs/http.md. */
const REFUSALS: Readonly<Record<number, string>> = {
  400: 'no client in the container takes it, or its headers are too long',
  413: 'the body is too long',
  414: 'the address is too long',
  429: 'too many requests in a second for the name',
  431: 'the headers are too long',
  503: 'too many connections for the name, or the tag server is not ready',
};
/** GA4's rule for names of events (docs/facts.md, Paths). */
const NAME = /^[A-Za-z]\w{0,39}$/;
/** The most names in a record: twice as many as GA4 sends in one request. Events of further names count as `other`. */
const MAX_NAMES = 20;
/** Longer than the longest name with `en=`. */
const MAX_REST = 64;
/**
 * Bodies of at most this number of octets, as GA4's are, are read as a whole: that takes less CPU than a stream, and they
 * can be sent again.
 */
const MAX_WHOLE = 16 * 1024;

/** The choices for ads and analytics (docs/facts.md, Consent). */
const CHOICES = /[?&]gcs=G1([01])([01])/;

const decoder = new TextDecoder();

type Body = OriginRequest['body'] | ArrayBuffer;

/**
 * Notes what a hit of GA4 says of itself: consent in the address, the names of its events there and in each line of its
 * body. No other value is read. Returns the unchanged body of any request, to send it on: a small one as a whole, a larger
 * one as a stream. Rejects if a small one doesn't arrive.
 */
export function noteHit(
  target: string,
  { headers, body }: OriginRequest,
  notes: Notes,
): Body | Promise<Body> {
  const length = headers.get('content-length');
  const stated = Number(length);
  const isSmall = length !== null && stated <= MAX_WHOLE;
  if (!HIT.test(target)) return body instanceof ReadableStream && isSmall ? octetsIn(body) : body;
  const scan = eventScanner(notes.events);
  scan(target);
  scan('\n');
  const [, ads, analytics] = CHOICES.exec(target) ?? [];
  if (ads) notes.consent = consentState(ads === '1', analytics === '1');
  if (!(body instanceof ReadableStream)) return body;
  return isSmall ? whole(body, scan) : streamed(body, { stated, scan, notes });
}

/** Notes that a hit is lost, and why, if this is the answer to one. */
export function noteAnswer(target: string, status: number, notes: Notes): void {
  if (status < 400 || !ANY_HIT.test(target)) return;
  notes.error = 'hit_refused';
  const reason = REFUSALS[status];
  notes.cause ??= `status ${status}${reason ? `: ${reason}` : ''}`;
}

type Scan = (text: string) => void;

/** Counts events by name in a text that comes in parts. A line's end also ends a value. */
function eventScanner(events: Notes['events']): Scan {
  let rest = '';
  return (text) => {
    const parts = (rest + text).split(/[?&\r\n]/);
    rest = `${parts.pop()}`.slice(0, MAX_REST);
    for (const part of parts) {
      if (!part.startsWith('en=')) continue;
      const name = part.slice(3);
      const key = NAME.test(name) && (events.has(name) || events.size < MAX_NAMES) ? name : 'other';
      events.set(key, (events.get(key) ?? 0) + 1);
    }
  };
}

const octetsIn = (body: ReadableStream): Promise<ArrayBuffer> => new Response(body).arrayBuffer();

async function whole(body: ReadableStream, scan: Scan): Promise<ArrayBuffer> {
  const octets = await octetsIn(body);
  scan(decoder.decode(octets));
  scan('\n');
  return octets;
}

function streamed(
  body: ReadableStream,
  { stated, scan, notes }: { readonly stated: number; readonly scan: Scan; readonly notes: Notes },
): ReadableStream {
  // The tag server gets the length as it was stated.
  const { readable, writable } = stated > 0 ? new FixedLengthStream(stated) : new TransformStream();
  const writer = writable.getWriter();
  const pass = async () => {
    for await (const chunk of body) {
      // Names have ASCII letters only, so a character that is cut between two chunks doesn't matter.
      scan(decoder.decode(chunk));
      await writer.write(chunk);
    }
    await writer.close();
  };
  const end = () => scan('\n');
  // If a body breaks off, the part that has passed is counted.
  notes.passing = pass()
    .catch(() => writer.abort())
    .then(end, end);
  return readable;
}
