import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseManifest } from '../../sites/manifest/load.ts';
import { decryptSecret, unbound } from '../../sites/manifest/secrets.ts';
import { eventually } from '../support/eventually.ts';
import { creation, World } from '../support/management/world.ts';
import { FACTS, PRIVATE_LINE, serviceAccountJson } from '../support/service-account.ts';

let world: World;
let id: string;
let site: string;
let path: string;
beforeAll(async () => {
  world = await World.open();
  const client = await world.client();
  const { body } = await world.call('POST', '/server-containers', { as: 'owner', body: creation(client) });
  ({ id, siteId: site } = body);
  path = `/server-containers/${id}/service-account`;
  await eventually(async () => expect((await read()).body.status).toBe('active'));
});
afterAll(() => world.close());

const read = () => world.call('GET', `/server-containers/${id}`, { as: 'owner' });
const put = (body: unknown, headers: Record<string, string> = {}, as = 'owner') =>
  world.call('PUT', path, { as, body, headers });

async function manifest() {
  const parsed = parseManifest((await world.file(site)) ?? '', `${site}.yaml`);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.manifest;
}

test('a key is stored encrypted for the host; the API answers only what identifies it', async () => {
  expect((await read()).body.serviceAccount).toBeNull();
  const { status, headers, body } = await put(serviceAccountJson({ extra: 'dropped' }));
  expect([status, body.serviceAccount]).toEqual([200, FACTS]);
  const again = await read();
  expect([again.headers.etag, again.body.serviceAccount]).toEqual([headers.etag, FACTS]);

  const { serviceAccount } = await manifest();
  expect(serviceAccount).toMatchObject(FACTS);
  const { key = '' } = serviceAccount ?? {};
  expect(JSON.parse(unbound(await decryptSecret(world.identity, key)).secret.reveal())).toEqual(
    serviceAccountJson(),
  );
  // Neither the manifest in git nor logs, database and answer have the private key in plain text.
  const rows = await world.owner.selectFrom('containers').selectAll().execute();
  const audit = await world.owner.selectFrom('audit_log').selectAll().execute();
  for (const text of [await world.file(site), world.logs.join('\n'), JSON.stringify([rows, audit, body])]) {
    expect(text).not.toContain(PRIVATE_LINE);
  }
  expect(JSON.stringify(rows)).not.toContain('AGE ENCRYPTED');
});

test('another key replaces the stored one, only if the container is as the caller has read it', async () => {
  const { headers } = await read();
  const next = serviceAccountJson({ private_key_id: 'another' });
  expect(await put(next, { 'if-match': '"old"' })).toMatchObject({ status: 412 });
  expect(await put(next, { 'if-match': String(headers.etag) })).toMatchObject({
    status: 200,
    body: { serviceAccount: { ...FACTS, keyId: 'another' } },
  });
  expect(await put(next, {}, 'viewer')).toMatchObject({ status: 403 });
});

test.each<[string, unknown, string, string]>([
  ['of a person', serviceAccountJson({ type: 'authorized_user' }), 'type', 'type must be service_account'],
  [
    'without an address',
    serviceAccountJson({ client_email: undefined }),
    'client_email',
    'client_email is missing',
  ],
  [
    'with a damaged private key',
    serviceAccountJson({ private_key: PRIVATE_LINE }),
    'private_key',
    'private_key must be an RSA private key in PEM',
  ],
  [
    'of 20 KiB',
    serviceAccountJson({ client_id: 'x'.repeat(20 * 1024) }),
    '',
    'the key must have at most 8192 bytes',
  ],
])('a key %s is refused with what to fix, and changes nothing', async (_what, body, member, detail) => {
  const before = await world.file(site);
  const answer = await put(body);
  expect(answer).toMatchObject({ status: 422, body: { detail, errors: [{ path: member }] } });
  expect(answer.body.type).toContain('invalid_service_account');
  expect(JSON.stringify(answer.body)).not.toContain(PRIVATE_LINE);
  expect(await world.file(site)).toBe(before);
});

test('a body that is no object is refused', async () => {
  expect(await put([])).toMatchObject({ status: 400 });
});

test('the account is removed, and removing it again changes nothing', async () => {
  expect(await world.call('DELETE', path, { as: 'owner' })).toMatchObject({
    status: 200,
    body: { serviceAccount: null },
  });
  expect((await manifest()).serviceAccount).toBeUndefined();
  const before = await world.repo.head();
  expect(await world.call('DELETE', path, { as: 'owner' })).toMatchObject({ status: 200 });
  expect(await world.repo.head()).toBe(before);
});
