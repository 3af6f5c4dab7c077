import { generateIdentity, identityToRecipient } from 'age-encryption';
import { afterEach, expect, test } from 'vitest';
import { formatManifest } from '../../../sites/manifest/load.ts';
import { encryptFor, encryptSecret } from '../../../sites/manifest/secrets.ts';
import { tagyardHere } from '../../support/cli/in-process.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';

let daemon: MemoryDaemon;
afterEach(() => daemon.close());

/** A text that this daemon can't decrypt. */
const foreign = async () =>
  await encryptSecret(await identityToRecipient(await generateIdentity()), 'aWQ9R1RNLVg=');

test('while a site can’t be decrypted, its last decryptable version is in force: what is lost is made again', async () => {
  daemon = await memoryDaemon();
  const push = async (extra: object) =>
    await daemon.push('one', formatManifest(daemon.manifest('one', 0, extra)));
  await push({});
  await daemon.reaches('one', 'Ready');
  const objects = daemon.objectCount('one');
  // Two in a row: the version before the newest can't be decrypted either.
  await push({ name: 'Renamed', containerConfig: await foreign() });
  await daemon.reaches('one', 'UndecryptableConfig');
  const { revision } = await push({ name: 'Again', containerConfig: await foreign() });
  await daemon.hasRead(revision);
  expect(daemon.objectCount('one')).toBe(objects);

  daemon.world('containers').clear();
  await daemon.fullPass();
  await eventually(() => expect(daemon.objectCount('one')).toBe(objects));

  await daemon.restart();
  daemon.world('containers').clear();
  await daemon.fullPass();
  await eventually(() => expect(daemon.objectCount('one')).toBe(objects));
  expect(daemon.loop.status('one')).toMatchObject({ reason: 'UndecryptableConfig', ready: false });
});

test.each([
  [
    'that can’t be decrypted',
    'UndecryptableConfig',
    foreign,
    'containerConfig can’t be decrypted on this host',
  ],
  [
    'with another container’s secret',
    'InvalidManifest',
    () => encryptFor(daemon.recipient, '7c9e6679-7425-40de-944b-e07fc1f90aff', daemon.config),
    'containerConfig was encrypted for another container',
  ],
])('a revert to a version %s is refused, and commits nothing', async (_what, reason, encrypted, said) => {
  daemon = await memoryDaemon();
  const url = await daemon.app.listen({ host: '127.0.0.1', port: 0 });
  await daemon.push('one', daemon.manifest('one', 0, { containerConfig: await encrypted() }));
  await daemon.reaches('one', reason);
  await daemon.push('one', daemon.manifest('one', 0));
  await daemon.reaches('one', 'Ready');
  const head = await daemon.repo.head();
  const refused = await tagyardHere(url, ['revert', 'one']);
  expect(refused.exitCode).toBe(1);
  expect(refused.stderr).toContain(said);
  expect(await daemon.repo.head()).toBe(head);
});
