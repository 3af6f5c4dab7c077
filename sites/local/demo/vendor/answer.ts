import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { encode } from './encoding.ts';

const MAX_AGE_SECONDS = 900;

/** The `cache-control` of Google's scripts and pages. It doesn't permit shared caches to keep them. */
export const PRIVATE = `private, max-age=${MAX_AGE_SECONDS}`;

/** Hits have bodies of any type, whose content doesn't matter here. */
export function acceptAnyBody(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, payload, done) => {
    payload.resume().on('end', () => done(null));
  });
}

/** The query's parameters. Like Google, the callers use the first value of a repeated one. */
export function queryOf({ url }: FastifyRequest): URLSearchParams {
  return new URL(url, 'http://vendor').searchParams;
}

/** Answers with a script with the headers that Google sends (docs/facts.md, Web container script). */
export async function sendScript(
  request: FastifyRequest,
  reply: FastifyReply,
  body: string,
): Promise<FastifyReply> {
  const { coding, bytes } = await encode(body, request.raw);
  return reply
    .headers({
      'content-type': 'application/javascript; charset=UTF-8',
      'cache-control': PRIVATE,
      expires: new Date(Date.now() + MAX_AGE_SECONDS * 1000).toUTCString(),
      vary: 'Accept-Encoding',
      'access-control-allow-origin': '*',
      'access-control-allow-credentials': 'true',
      'access-control-allow-headers': 'Cache-Control',
      'cross-origin-resource-policy': 'cross-origin',
      server: 'Google Tag Manager',
      'x-xss-protection': '0',
      'alt-svc': 'h3=":443"; ma=2592000',
      ...(coding === null ? {} : { 'content-encoding': coding }),
    })
    .send(bytes);
}

export function sendNotFound(reply: FastifyReply): FastifyReply {
  return reply.code(404).type('text/html; charset=UTF-8').send('<!doctype html><title>Error 404</title>');
}
