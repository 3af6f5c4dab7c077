import type { FastifyInstance } from 'fastify';
import { afterEach, expect, test } from 'vitest';
import { pacedFetch } from '../../../gitops/clients/cloudflare-transport.ts';
import { createPace } from '../../../gitops/clients/pace.ts';
import { buildStandby } from '../../../gitops/http/app.ts';

const SECRET = { 'x-secret': 'secret' };
const opened: FastifyInstance[] = [];
afterEach(async () => {
  for (const app of opened.splice(0)) await app.close();
});

/** A replica that waits; `url` is the leader's. */
async function standby(url: string | null, name = 'one') {
  const ended = new AbortController();
  const leader = () => ({ name, url });
  const app = buildStandby({ secrets: ['secret'], leader, ended: ended.signal });
  opened.push(app);
  return { url: await app.listen({ host: '127.0.0.1', port: 0 }), ended };
}

test('a replica whose leader is gone or names no address answers 503 and says when to retry', async () => {
  const free = await standby(null);
  const taken = await standby('http://127.0.0.1:9');
  for (const { url } of [free, taken]) {
    const answer = await fetch(`${url}/sites`, { headers: SECRET });
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await answer.json()).toMatchObject({ code: 'not_leading' });
    expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ status: 'standby', leader: 'one' });
  }
});

test('a request that one replica has passed on isn’t passed on again by the next', async () => {
  const third = await standby(null, 'three');
  const second = await standby(third.url, 'two');
  const first = await standby(second.url);
  const answer = await fetch(`${first.url}/sync`, { method: 'POST', headers: SECRET, body: 'text' });
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({ code: 'not_leading', detail: 'two leads' });
});

test('without the right to write, a call of Cloudflare’s API that changes something isn’t sent', async () => {
  const { url } = await standby(null);
  const send = pacedFetch(createPace({ perSecond: 1_000, burst: 10 }), {
    timeoutMs: 5_000,
    mayWrite: () => false,
  });
  await expect(send(new Request(url, { method: 'PUT' }))).rejects.toThrow(
    'this replica is no longer the leader',
  );
  expect((await send(new Request(`${url}/healthz`))).status).toBe(200);
});
