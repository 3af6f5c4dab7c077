import { Miniflare } from 'miniflare';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundleControl, COMPATIBILITY_DATE } from '../../../edge/bundle.ts';
import { controlOf, hostKv, newControlSecret } from '../../../edge/host-control.ts';

const secret = newControlSecret();
let runtime: Miniflare;
beforeAll(async () => {
  const contents = await bundleControl();
  runtime = new Miniflare({
    compatibilityDate: COMPATIBILITY_DATE,
    modules: [{ type: 'ESModule', path: 'control.js', contents }],
    bindings: { CONTROL_SECRET: secret },
    kvNamespaces: ['ROUTES'],
  });
  await runtime.ready;
});
afterAll(() => runtime.dispose());

test.each([
  ['no secret', {}],
  ['another secret', { 'x-control-secret': newControlSecret() }],
  ['an empty secret', { 'x-control-secret': '' }],
])('a process of the machine with %s reads nothing', async (_what, headers) => {
  await hostKv(controlOf(runtime, secret), 'ROUTES').put('host', 'kept');
  const body = JSON.stringify({ op: 'kvGet', namespace: 'ROUTES', key: 'host' });
  const answer = await fetch(await runtime.ready, { method: 'POST', headers, body });
  expect({ status: answer.status, text: await answer.text() }).toEqual({ status: 404, text: '' });
});

test('values are read as they were written, listed with their metadata, and deleted', async () => {
  const kv = hostKv(controlOf(runtime, secret), 'ROUTES');
  await kv.put('text/ü', '"\u0000\ud83d\ude00', { metadata: { mark: 1 } });
  expect(await kv.get('text/ü')).toBe('"\u0000\ud83d\ude00');
  expect(await kv.list({ prefix: 'text/' })).toEqual({
    keys: [{ name: 'text/ü', metadata: { mark: 1 } }],
    complete: true,
  });
  await kv.delete('text/ü');
  expect(await kv.get('text/ü')).toBeNull();
});

test('an error of the binding reaches the caller', async () => {
  const kv = hostKv(controlOf(runtime, secret), 'ROUTES');
  await expect(kv.put('key', 'value', { expirationTtl: 1 })).rejects.toThrow(/expiration/i);
});
