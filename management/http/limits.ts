import rateLimit, { type CreateRateLimitOptions } from '@fastify/rate-limit';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { counted } from '../../base/text.ts';
import { callerOf } from './auth.ts';
import { ManagementProblem } from './errors.ts';

const WINDOW_MS = 60_000;
/** Addresses and subjects that are counted at once; the least recently seen are dropped first. */
const MOST_COUNTED = 10_000;

/** Requests a minute, and open streams. */
export interface Limits {
  /** Counted before the token is checked, so that it also limits attempts to guess tokens. */
  readonly perAddress: number;
  readonly perSubject: number;
  readonly streamsPerSubject: number;
}

/** Requests a minute from one address for pages that need no login and make the API ask others, such as resolvers. */
const PAGES = 60;

/** The seconds until the address may get such a page again; `null`: it may now. */
export type PageLimit = (request: FastifyRequest) => Promise<number | null>;
type Hook = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/** A request counts once for each part of its body of this size, in bytes. */
const PART = 65_536;

/** How often a request counts. A body of unknown length counts as the longest that its route takes. */
function costOf({ headers, routeOptions }: FastifyRequest): number {
  const isUnknown = headers['transfer-encoding'] !== undefined;
  const length = isUnknown ? routeOptions.bodyLimit : Number(headers['content-length'] ?? 0);
  return Math.max(1, Math.ceil(Math.min(length, routeOptions.bodyLimit) / PART));
}

type Counted = Awaited<ReturnType<ReturnType<FastifyInstance['createRateLimit']>>>;
type Exceeded = Extract<Counted, { readonly isAllowed: false }>;
const isExceeded = (state: Counted): state is Exceeded => !state.isAllowed && state.isExceeded;

/** The limits per address (before the token check) and per subject (after it) as hooks, and that of pages. */
export async function buildLimits(
  app: FastifyInstance,
  { perAddress, perSubject }: Pick<Limits, 'perAddress' | 'perSubject'>,
): Promise<{ readonly address: Hook; readonly subject: Hook; readonly page: PageLimit }> {
  await app.register(rateLimit, { global: false, cache: MOST_COUNTED });
  const limit = (options: CreateRateLimitOptions): Hook => {
    const count = app.createRateLimit({ timeWindow: WINDOW_MS, ...options });
    return async (request, reply) => {
      let state = await count(request);
      for (let more = costOf(request) - 1; more > 0 && !isExceeded(state); more -= 1)
        state = await count(request);
      if (!isExceeded(state)) return;
      reply.header('retry-after', state.ttlInSeconds);
      throw new ManagementProblem('rate_limited', {
        detail: `try again in ${counted(state.ttlInSeconds, 'second')}`,
      });
    };
  };
  const countPages = app.createRateLimit({ timeWindow: WINDOW_MS, max: Math.min(perAddress, PAGES) });
  return {
    page: async (request) => {
      const state = await countPages(request);
      return isExceeded(state) ? state.ttlInSeconds : null;
    },
    address: limit({ max: perAddress }),
    subject: limit({ max: perSubject, keyGenerator: (request) => callerOf(request).subject }),
  };
}
