import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureLocalCa, type LocalCa } from '../../sites/local/local-ca.ts';
import { parseManifest } from '../../sites/manifest/load.ts';
import { decryptSecret, unbound } from '../../sites/manifest/secrets.ts';
import { eventually } from '../support/eventually.ts';
import { creation, World } from '../support/management/world.ts';

const PAGE = 'shop.acme.example';
const CUSTOM = 'metrics.acme.example';

let home: string;
let ca: LocalCa;
let world: World;
let site: string;
let path: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'tagyard-pairs-'));
  ca = await ensureLocalCa(home);
  world = await World.open();
  const { body } = await world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(await world.client(), PAGE),
  });
  site = body.siteId;
  path = `/server-containers/${body.id}`;
  await eventually(async () => expect((await read()).status).toBe('active'));
  const custom = { as: 'owner', body: { domain: CUSTOM } };
  expect(await world.call('POST', `${path}/custom-domains`, custom)).toMatchObject({ status: 200 });
});
afterAll(async () => {
  await world.close();
  await rm(home, { recursive: true, force: true });
});

const read = async () => (await world.call('GET', path, { as: 'owner' })).body;
const put = (body: unknown, as = 'owner') => world.call('PUT', `${path}/certificate`, { as, body });

async function pairFor(name: string, from = ca) {
  const { cert, key } = await from.pathsFor(name);
  return { certificate: await readFile(cert, 'utf8'), privateKey: await readFile(key, 'utf8') };
}

async function manifest() {
  const parsed = parseManifest((await world.file(site)) ?? '', `${site}.yaml`);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.manifest;
}

test('a pair is stored with its key encrypted, and other names keep their source', async () => {
  await world.call('PATCH', path, { as: 'owner', body: { tls: 'acme' } });
  const pair = await pairFor(CUSTOM);
  // As an editor of Windows saves it.
  const given = { ...pair, certificate: pair.certificate.replaceAll('\n', '\r\n') };
  expect(await put(given)).toMatchObject({ status: 200, body: { tls: 'uploaded' } });
  expect(await put(pair, 'viewer')).toMatchObject({ status: 403 });
  const { tls } = await manifest();
  expect(tls).toMatchObject({ mode: 'uploaded', others: 'acme', certificate: pair.certificate });
  const { secret } = unbound(await decryptSecret(world.identity, tls.key ?? ''));
  expect(secret.reveal()).toBe(pair.privateKey);
  const line = pair.privateKey.split('\n')[1] ?? '';
  const rows = JSON.stringify(await world.owner.selectFrom('containers').selectAll().execute());
  const audit = JSON.stringify(await world.owner.selectFrom('audit_log').selectAll().execute());
  for (const text of [await world.file(site), world.logs.join('\n'), rows, audit]) {
    expect(text).not.toContain(line);
  }
  expect(rows).not.toContain('AGE ENCRYPTED');
});

test.each<[string, () => Promise<object>, string | RegExp]>([
  ['of another name', () => pairFor('b.example.net'), `is for b.example.net, not for ${CUSTOM}`],
  [
    'with another’s key',
    async () => ({ ...(await pairFor(CUSTOM)), privateKey: (await pairFor('b.example.net')).privateKey }),
    'the key is not that of the certificate',
  ],
  [
    'whose chain is in another order',
    async () => {
      const { certificate, privateKey } = await pairFor(CUSTOM);
      const other = (await pairFor('b.example.net')).certificate;
      return { certificate: `${certificate}${other}`, privateKey };
    },
    /certificate \d of the file is not the issuer of the one before it/,
  ],
  [
    'that has expired',
    async () => {
      const now = () => new Date('2020-01-01');
      const old = await ensureLocalCa(join(home, 'old'), { now });
      return await pairFor(CUSTOM, old);
    },
    /ended on 20\d\d-/,
  ],
])('a pair %s is refused and changes nothing', async (_what, pair, detail) => {
  const before = await world.file(site);
  const answer = await put(await pair());
  expect(answer).toMatchObject({ status: 422, body: { code: 'invalid_certificate' } });
  expect(answer.body.detail).toMatch(detail);
  expect(await world.file(site)).toBe(before);
});

test('another source removes the pair', async () => {
  expect(await put(await pairFor(CUSTOM))).toMatchObject({ status: 200 });
  await world.call('PATCH', path, { as: 'owner', body: { tls: 'files' } });
  expect((await manifest()).tls).toEqual({ mode: 'files' });
});
