import { afterAll, beforeAll, expect, test } from 'vitest';
import { readManifest } from '../../sites/manifest/read.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import { decryptSecret, unbound } from '../../sites/manifest/secrets.ts';
import { eventually } from '../support/eventually.ts';
import type { MemoryDaemon } from '../support/gitops/memory-daemon.ts';
import { provisionedWorld } from '../support/management/provisioned.ts';
import { CONFIG, creation, type World } from '../support/management/world.ts';

let world: World;
let daemon: MemoryDaemon;
let close: () => Promise<void>;
let client: string;
let thief: string;
let shop: { id: string; siteId: string };
beforeAll(async () => {
  ({ world, daemon, close } = await provisionedWorld({ logLevel: 'silent' }));
  client = await world.client();
  const body = { name: 'Thief', members: [{ subject: 'other', role: 'owner' }] };
  thief = (await world.call('POST', '/clients', { as: 'root', body })).body.id;
  shop = (await world.call('POST', '/server-containers', { as: 'owner', body: creation(client) })).body;
  await daemon.reaches(shop.siteId, 'Ready');
});
afterAll(() => close());

async function manifestOf(site: string): Promise<Manifest> {
  const parsed = await readManifest((await world.file(site)) ?? '', `${site}.yaml`);
  if (!parsed.ok) throw new Error(`${site}.yaml is invalid`);
  return parsed.manifest;
}

async function clone(id: string, as: string, domain: string): Promise<{ id: string; siteId: string }> {
  const body = { name: domain, domains: [domain], webTagIds: { [domain]: 'GTM-ABC1234' } };
  const { status, body: made } = await world.call('POST', `/server-containers/${id}/clone`, { as, body });
  expect(status).toBe(202);
  return made;
}

test('a clone runs with the configuration of its source, encrypted for itself', async () => {
  const { id, siteId } = await clone(shop.id, 'owner', 'second.example');
  await daemon.reaches(siteId, 'Ready');
  const { containerConfig } = await manifestOf(siteId);
  const { secret, container } = unbound(await decryptSecret(daemon.ageIdentity, containerConfig));
  expect(container).toBe(id);
  expect(secret.reveal()).toBe(CONFIG);
});

test('a clone doesn’t get what its source has copied from another client, with the container’s id', async () => {
  const body = creation(thief, 'thief.example', { name: 'Theirs' });
  const own = (await world.call('POST', '/server-containers', { as: 'other', body })).body;
  await daemon.reaches(own.siteId, 'Ready');
  const { container, containerConfig } = await manifestOf(shop.siteId);
  await daemon.push(own.siteId, { ...(await manifestOf(own.siteId)), container, containerConfig });
  await daemon.reaches(own.siteId, 'NameTaken');
  const { id, siteId } = await clone(own.id, 'other', 'third.example');
  await eventually(async () => {
    const shown = (await world.call('GET', `/server-containers/${id}`, { as: 'other' })).body;
    expect(shown).toMatchObject({ status: 'failed' });
    expect(shown.statusDetail).toContain('containerConfig was encrypted for another container');
  });
  expect(daemon.objectCount(siteId)).toBe(0);
});

test('a client that was forged in git gets no secret of that client', async () => {
  const { containerConfig } = await manifestOf(shop.siteId);
  const forged = daemon.manifest('forged', 30, { client, containerConfig });
  const { revision } = await daemon.push('forged', forged);
  await daemon.reaches('forged', 'InvalidManifest');
  const path = `/provision?wait=30&revision=${revision}`;
  const { body } = await daemon.call('POST', path, { ...forged, client: thief });
  expect(body.operation).toMatchObject({ status: 'failed' });
  expect(await daemon.repo.head()).toBe(revision);
});
