import { hash, randomUUID } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Database } from './db/database.ts';
import { callerOf } from './http/auth.ts';
import { ManagementProblem } from './http/errors.ts';
import { seal, unseal } from './http/sealed.ts';
import {
  beginCreation,
  freeKey,
  type IdempotencyKey,
  pauseCreation,
  storeAnswer,
} from './records/idempotency.repository.ts';
import { isDryRun } from './view/plan.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A repetition with the same `Idempotency-Key` gets the first answer. The route creates a thing with `newId`. */
    repeatable?: true;
  }
  interface FastifyRequest {
    /**
     * The id of what the request creates. A continued creation uses the id of its first attempt, so the thing may exist
     * already.
     */
    newId: string;
  }
}

const storedAnswer = z.object({
  status: z.int(),
  headers: z.record(z.string(), z.string()),
  body: z.string(),
});
/** Headers that are stored with an answer. */
const KEPT = ['content-type', 'etag', 'location'] as const;

interface Attempt {
  readonly key: IdempotencyKey;
  readonly secret: string;
  /** An earlier attempt may have created the thing. */
  readonly isContinued: boolean;
}

/**
 * Makes the routes with `repeatable` repeatable. The answer to a success is stored before it is sent, sealed with the
 * key, because it may hold a secret. A refusal of a first attempt frees the key. After any other failure, or a process
 * that died, a repetition continues the creation with the same id.
 */
export function registerIdempotency(api: FastifyInstance, db: Database): void {
  const attempts = new WeakMap<FastifyRequest, Attempt>();
  api.decorateRequest('newId', '');

  api.addHook('preHandler', async (request, reply) => {
    const id = randomUUID();
    request.newId = id;
    const { 'idempotency-key': secret } = request.headers;
    const { repeatable } = request.routeOptions.config;
    if (repeatable === undefined || typeof secret !== 'string' || isDryRun(request.query)) return;
    const [path = ''] = request.url.split('?');
    const key = {
      subject: callerOf(request).subject,
      key: `sha256:${hash('sha256', secret)}`,
      bodyHash: hash('sha256', JSON.stringify([path, request.body])),
    };
    const begun = await beginCreation(db, key, id);
    if ('refused' in begun) throw new ManagementProblem(begun.refused);
    if ('answer' in begun) {
      return await answerAgain(reply, unseal({ secret, purpose: 'answers' }, String(begun.answer)));
    }
    request.newId = begun.made;
    attempts.set(request, { key, secret, isContinued: begun.made !== id });
  });

  api.addHook('onSend', async (request, reply, payload) => {
    const attempt = attempts.get(request);
    if (attempt === undefined) return payload;
    const { key, secret, isContinued } = attempt;
    const { statusCode: status } = reply;
    if (status < 400) {
      const kept = KEPT.flatMap((name) => {
        const value = reply.getHeader(name);
        return typeof value === 'string' ? [[name, value]] : [];
      });
      const answer = { status, headers: Object.fromEntries(kept), body: String(payload) };
      await storeAnswer(db, key, seal({ secret, purpose: 'answers' }, answer));
    } else if (status < 500 && !isContinued) await freeKey(db, key);
    else await pauseCreation(db, key);
    return payload;
  });
}

async function answerAgain(reply: FastifyReply, stored: unknown): Promise<FastifyReply> {
  const { status, headers, body } = storedAnswer.parse(stored);
  return await reply.status(status).headers(headers).send(body);
}
