import rateLimit, { type CreateRateLimitOptions } from '@fastify/rate-limit';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { counted } from '../../gitops/base/text.ts';
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

/** The limits per address (before the token check) and per subject (after it) as hooks, and that of pages. */
export async function buildLimits(
  app: FastifyInstance,
  { perAddress, perSubject }: Pick<Limits, 'perAddress' | 'perSubject'>,
): Promise<{ readonly address: Hook; readonly subject: Hook; readonly page: PageLimit }> {
  await app.register(rateLimit, { global: false, cache: MOST_COUNTED });
  const limit = (options: CreateRateLimitOptions): Hook => {
    const count = app.createRateLimit({ timeWindow: WINDOW_MS, ...options });
    return async (request, reply) => {
      const state = await count(request);
      if (state.isAllowed || !state.isExceeded) return;
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
      return state.isAllowed || !state.isExceeded ? null : state.ttlInSeconds;
    },
    address: limit({ max: perAddress }),
    subject: limit({ max: perSubject, keyGenerator: (request) => callerOf(request).subject }),
  };
}
