import type { ServerResponse } from 'node:http';
import type { ProxiedRequest } from './forward.ts';

const CHALLENGES = '/.well-known/acme-challenge/';
const TOKEN = /^[A-Za-z0-9_-]+$/;

/** Whether the request's path is that of a challenge (RFC 8555, 8.3). */
export function isChallenge({ target }: ProxiedRequest): boolean {
  return target.startsWith(CHALLENGES);
}

/** Answers any token: only the holder of the account's key can cause the authority to ask for one. */
export function answerChallenge(
  { target }: ProxiedRequest,
  challengeKey: string | undefined,
  response: ServerResponse,
): void {
  const [token = ''] = target.slice(CHALLENGES.length).split('?');
  const known = challengeKey !== undefined && TOKEN.test(token);
  response.writeHead(known ? 200 : 404, { 'content-type': 'text/plain' });
  response.end(known ? `${token}.${challengeKey}` : '');
}
