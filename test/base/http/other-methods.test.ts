import fastify from 'fastify';
import { expect, test } from 'vitest';
import { otherMethods } from '../../../base/http/other-methods.ts';

async function app() {
  const app = fastify();
  app.get('/before', async () => 'before');
  await app.register(async (guarded) => {
    guarded.addHook('onRequest', async ({ headers }) => {
      if (headers['x-secret'] === undefined) throw Object.assign(new Error('no secret'), { statusCode: 401 });
    });
    const refuse = otherMethods(guarded, () => Object.assign(new Error('refused'), { statusCode: 405 }));
    guarded.get('/things/:id', async () => 'read');
    await guarded.register(async (inner) => {
      inner.post('/things/:id', async () => 'written');
      inner.delete('/things', async () => 'deleted');
    });
    refuse(guarded);
  });
  return app;
}

test.each([
  ['GET', '/things/7', 200, undefined],
  ['HEAD', '/things/7', 200, undefined],
  ['POST', '/things/7', 200, undefined],
  ['PUT', '/things/7', 405, 'GET, HEAD, POST'],
  ['OPTIONS', '/things/7', 405, 'GET, HEAD, POST'],
  ['GET', '/things', 405, 'DELETE'],
  ['PUT', '/things/7/8', 404, undefined],
  ['POST', '/before', 404, undefined],
] as const)('%s %s is answered with %i', async (method, url, status, allow) => {
  const answer = await (await app()).inject({ method, url, headers: { 'x-secret': 'known' } });
  expect([answer.statusCode, answer.headers.allow]).toEqual([status, allow]);
});

test('the hooks of the path run first, and a malformed body doesn’t change the answer', async () => {
  const request = {
    method: 'PUT',
    url: '/things/7',
    payload: '{',
    headers: { 'content-type': 'application/json' },
  } as const;
  expect((await (await app()).inject(request)).statusCode).toBe(401);
  const headers = { ...request.headers, 'x-secret': 'known' };
  expect((await (await app()).inject({ ...request, headers })).statusCode).toBe(405);
});
