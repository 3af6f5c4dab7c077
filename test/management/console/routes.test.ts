import Fastify from 'fastify';
import { expect, test } from 'vitest';
import { consoleRoutes } from '../../../management/console/console.routes.ts';

test.each<[string | undefined, string | undefined]>([
  [undefined, undefined],
  ['', undefined],
  ['gzip', 'gzip'],
  ['gzip, deflate, br', 'br'],
  ['gzip; q=0', undefined],
  ['gzip;q=0.000, br;q=0.5', 'br'],
  ['br ; q=0, gzip', 'gzip'],
  ['GZIP', 'gzip'],
  ['*', 'br'],
  ['br;q=0, *', 'gzip'],
  ['*;q=0', undefined],
  ['x-br, no-gzip', undefined],
])('the page for accept-encoding %s is encoded as %s', async (accepted, encoding) => {
  await using app = Fastify();
  await app.register(consoleRoutes());
  const headers = accepted === undefined ? {} : { 'accept-encoding': accepted };
  const answer = await app.inject({ url: '/console', headers });
  expect(answer.statusCode).toBe(200);
  expect(answer.headers.vary).toBe('accept-encoding');
  expect(answer.headers['content-encoding']).toBe(encoding);
});
