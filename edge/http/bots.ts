import { list } from 'isbot';
import { setBounded } from '../base/bounded-map.ts';

/** The longest user agent that is matched. Browsers' have about 200 characters. */
const MAX_AGENT = 512;
/** Cloudflare's score of a request that is certainly automated; from 2 on it is a guess. */
const CERTAIN_SCORE = 1;

/**
 * User agents that don't prove a bot: a site's own servers and checks use such names, and so do HTTP clients of Node and
 * headless browsers. Some entries of the library's list match by shape, for example any single word. Entries that match one
 * of these user agents are not used.
 */
const NEUTRAL = 'agent\nshop-agent\nshop/1\nshop/1.0\nshop/1.0 (server)\nnode\nundici\nHeadless';

let namesBot: RegExp | undefined;

/** Verdicts by user agent: matching the list takes some 15 µs, and most visitors have one of few browsers. */
const verdicts = new Map<string, boolean>();
const MAX_VERDICTS = 1000;

function buildList(): RegExp {
  // All neutral names at once, one per line: this halves the milliseconds that an isolate's first request pays for the
  // list.
  const named = list.filter((entry) => !new RegExp(entry, 'im').test(NEUTRAL));
  return new RegExp(named.join('|'), 'i');
}

/**
 * True for a bot that Cloudflare has verified or is certain of, or that names itself in its user agent. A missing user
 * agent is no sign of a bot. `judged` is Cloudflare's `cf.botManagement`, given only if the visitor is Cloudflare's peer.
 */
export function isBot(agent: string | null, judged: unknown): boolean {
  if (judged instanceof Object) {
    if ('verifiedBot' in judged && judged.verifiedBot === true) return true;
    if ('score' in judged && judged.score === CERTAIN_SCORE) return true;
  }
  if (!agent) return false;
  const text = agent.slice(0, MAX_AGENT);
  const known = verdicts.get(text);
  if (known !== undefined) return known;
  namesBot ??= buildList();
  const verdict = namesBot.test(text);
  setBounded(verdicts, MAX_VERDICTS, text, verdict);
  return verdict;
}
