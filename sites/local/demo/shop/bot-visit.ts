import { type LookupOptions, lookup } from 'node:dns';
import { Agent, request } from 'undici';
import { z } from 'zod';

/** What the edge did with a bot's visit. */
interface BotVisit {
  readonly agent: string;
  /** The status of the bootstrap. */
  readonly status: number;
  readonly hasProfile: boolean;
}

const AGENT = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)';
const TIMEOUT_MS = 5_000;

const bootAnswer = z.object({ profile: z.unknown() });

/** RFC 6761 reserves names under `.localhost` for loopback; browsers know that, name servers need not. */
const dispatcher = new Agent({
  connect: {
    lookup(hostname: string, options: LookupOptions, done) {
      lookup(hostname.endsWith('.localhost') ? '127.0.0.1' : hostname, options, done);
    },
  },
});

/**
 * A visit of a page at `origin` by a bot that runs scripts: the loader, then the bootstrap, under the name of Google's
 * crawler. A page can't change its browser's name, so the shop's server makes the visit.
 */
export async function visitAsBot(
  { snippet, edgeUrl }: { readonly snippet: string; readonly edgeUrl: string },
  origin: string,
): Promise<BotVisit> {
  const token = /\/l\/([\w-]+)\.js/.exec(snippet)?.[1];
  if (token === undefined) throw new Error('the snippet names no loader');
  const headers = { 'user-agent': AGENT, origin };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const loader = await request(`${edgeUrl}/l/${token}.js`, { headers, signal, dispatcher });
  await loader.body.dump();
  const { statusCode, body } = await request(`${edgeUrl}/boot`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'text/plain' },
    body: JSON.stringify({ loader: token, url: origin, consent: {} }),
    signal,
    dispatcher,
  });
  const text = await body.text();
  const answer = statusCode === 200 ? bootAnswer.parse(JSON.parse(text)) : null;
  return { agent: 'Googlebot', status: statusCode, hasProfile: (answer?.profile ?? null) !== null };
}
