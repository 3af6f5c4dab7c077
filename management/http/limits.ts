import rateLimit, { type CreateRateLimitOptions } from '@fastify/rate-limit';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { callerOf } from './auth.ts';
import { ProblemError } from './errors.ts';

const WINDOW_MS = 60_000;
/** Addresses and subjects that are remembered at once; the ones that were silent longest are forgotten first. */
const REMEMBERED = 10_000;

/** Requests a minute. */
export interface Limits {
  /** Before the token is looked at: what guessing tokens costs. */
  readonly perAddress: number;
  readonly perSubject: number;
}

type Hook = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/** The two limits as hooks, one for before the token check and one for after it. */
export async function buildLimits(
  app: FastifyInstance,
  { perAddress, perSubject }: Limits,
): Promise<{ readonly address: Hook; readonly subject: Hook }> {
  await app.register(rateLimit, { global: false, cache: REMEMBERED });
  const limit = (options: CreateRateLimitOptions): Hook => {
    const count = app.createRateLimit({ timeWindow: WINDOW_MS, ...options });
    return async (request, reply) => {
      const state = await count(request);
      if (state.isAllowed || !state.isExceeded) return;
      reply.header('retry-after', state.ttlInSeconds);
      throw new ProblemError('rate_limited', `try again in ${state.ttlInSeconds} seconds`);
    };
  };
  return {
    address: limit({ max: perAddress }),
    subject: limit({ max: perSubject, keyGenerator: (request) => callerOf(request).subject }),
  };
}
