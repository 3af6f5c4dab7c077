import { once } from 'node:events';
import { type IncomingMessage, request as send } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { StandbyDeps } from './deps.ts';
import { ProvisionerProblem } from './errors.ts';

/** Marks a request that a replica has passed on. It isn't passed on again: two may take each other for the leader. */
const FORWARDED = 'x-tagyard-forwarded';
/** Headers of one connection (RFC 9110, 7.6.1). */
const OF_A_CONNECTION = [
  ...['connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
  // This server has already met the expectation.
  'expect',
];
/** The longest that the leader may take to begin its answer, milliseconds. */
const ANSWER_MS = 60_000;
/** Seconds until a caller tries again: about the time in which another replica takes over. */
const RETRY_AFTER = 5;

/**
 * A hook that answers each request except those to `/healthz` with the leader's answer, so that a Service may send
 * requests to every replica. Throws `not_leading` where the leader can't be reached. Nothing is sent twice.
 */
export function forwardToLeader({ leader, ended }: StandbyDeps) {
  return async ({ raw }: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const [path] = (raw.url ?? '').split('?', 1);
    if (path === '/healthz') return;
    const found = leader();
    try {
      if (found === null) throw new Error('no replica leads');
      if (raw.headers[FORWARDED] !== undefined || found.url === null) throw new Error(`${found.name} leads`);
      const answer = await answerOf(found.url, raw, ended);
      reply.hijack();
      reply.raw.writeHead(answer.statusCode ?? 502, withoutConnection(answer.headers));
      // After a failure, the caller sees the answer end early.
      await pipeline(answer, reply.raw, { signal: ended }).catch(() => reply.raw.destroy());
    } catch (cause) {
      reply.header('retry-after', RETRY_AFTER);
      const detail = cause instanceof Error ? cause.message : String(cause);
      throw new ProvisionerProblem('not_leading', { detail, cause });
    }
  };
}

async function answerOf(
  url: string,
  incoming: IncomingMessage,
  ended: AbortSignal,
): Promise<IncomingMessage> {
  const { method, headers } = incoming;
  const started = new AbortController();
  const late = setTimeout(() => started.abort(), ANSWER_MS);
  const signal = AbortSignal.any([ended, started.signal]);
  const outgoing = send(new URL(incoming.url ?? '/', url), {
    method,
    headers: { ...withoutConnection(headers), [FORWARDED]: '1', ...framing(headers) },
    signal,
  });
  // The error reaches `answered`; once the answer's head has arrived, it reaches the reader of the answer.
  outgoing.on('error', () => undefined);
  try {
    const answered = once(outgoing, 'response', { signal });
    pipeline(incoming, outgoing).catch(() => outgoing.destroy());
    const [answer] = await answered;
    return answer;
  } finally {
    clearTimeout(late);
  }
}

/** A body of unknown length is sent on in chunks. */
const framing = (headers: IncomingMessage['headers']) =>
  headers['transfer-encoding'] === undefined ? {} : { 'transfer-encoding': 'chunked' };

const withoutConnection = (headers: IncomingMessage['headers']) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_A_CONNECTION.includes(name)));
