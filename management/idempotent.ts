import { hash, randomUUID } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { newSecretBytes } from './access/secret-token.ts';
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
import { installationMac } from './records/installation-key.ts';
import { isDryRun } from './view/plan.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A repetition with the same `Idempotency-Key` gets the first answer. The route creates a thing with `newId`. */
    repeatable?: {
      /** Throws unless the caller may make the request. Called before the request is made, and before it is repeated. */
      demand(request: FastifyRequest): Promise<unknown>;
      /** The member of the answer with the secret that the route makes of `secretBytes`. It is never stored. */
      readonly secret?: { readonly member: string; of(bytes: Buffer): string };
      /** The answer as it is stored. Default: as it is. */
      stored?(answer: unknown): unknown;
      /** The stored answer as this caller may see it now. Default: as it is. */
      seen?(answer: unknown, request: FastifyRequest): Promise<unknown>;
    };
  }
  interface FastifyRequest {
    /**
     * The id of what the request creates. A continued creation uses the id of its first attempt, so the thing may exist
     * already.
     */
    newId: string;
    /** 32 bytes to make a secret of: random, or with an `Idempotency-Key` the same in each attempt. */
    secretBytes: Buffer;
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
 * key and without its secret: a repetition derives the secret again, from the installation's key and the caller's. A
 * refusal of a first attempt frees the key. After any other failure, or a process that died, a repetition continues the
 * creation with the same id.
 */
export function registerIdempotency(api: FastifyInstance, db: Database): void {
  const attempts = new WeakMap<FastifyRequest, Attempt>();
  api.decorateRequest('newId', '');
  api.decorateRequest<Buffer | null>('secretBytes', null);

  api.addHook('preHandler', async (request, reply) => {
    const id = randomUUID();
    request.newId = id;
    request.secretBytes = newSecretBytes();
    const { 'idempotency-key': secret } = request.headers;
    const { repeatable } = request.routeOptions.config;
    await repeatable?.demand(request);
    if (repeatable === undefined || typeof secret !== 'string' || isDryRun(request.query)) return;
    const [path = ''] = request.url.split('?');
    const key = {
      subject: callerOf(request).subject,
      key: `sha256:${hash('sha256', secret)}`,
      bodyHash: hash('sha256', JSON.stringify([path, request.body])),
    };
    const begun = await beginCreation(db, key, id);
    if ('refused' in begun) throw new ManagementProblem(begun.refused);
    if (repeatable.secret !== undefined) {
      const mac = await installationMac(db);
      request.secretBytes = mac('secret', [key.subject, secret, begun.made]).digest();
    }
    if ('answer' in begun) {
      return await answerAgain(request, reply, unseal({ secret, purpose: 'answers' }, String(begun.answer)));
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
      const { secret: own, stored } = request.routeOptions.config.repeatable ?? {};
      const { [own?.member ?? '']: _, ...rest } = JSON.parse(String(payload));
      const body = JSON.stringify(stored?.(rest) ?? rest);
      const answer = { status, headers: Object.fromEntries(kept), body };
      await storeAnswer(db, key, seal({ secret, purpose: 'answers' }, answer));
    } else {
      const end = status < 500 && !isContinued ? freeKey : pauseCreation;
      // As in the audit: an error's answer must not fail with the database. The attempt counts as running for a while.
      await end(db, key).catch((err: unknown) => request.log.warn({ err }, 'a key could not be given back'));
    }
    return payload;
  });
}

async function answerAgain(
  request: FastifyRequest,
  reply: FastifyReply,
  stored: unknown,
): Promise<FastifyReply> {
  const { status, headers, body } = storedAnswer.parse(stored);
  const { secret, seen } = request.routeOptions.config.repeatable ?? {};
  const answer = JSON.parse(body);
  // An older release has stored it.
  if (secret !== undefined) answer[secret.member] ??= secret.of(request.secretBytes);
  return await reply
    .status(status)
    .headers(headers)
    .send((await seen?.(answer, request)) ?? answer);
}
