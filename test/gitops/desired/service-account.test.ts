import { generateIdentity, identityToRecipient } from 'age-encryption';
import { afterEach, expect, test } from 'vitest';
import { formatManifest } from '../../../sites/manifest/load.ts';
import type { ManifestInput } from '../../../sites/manifest/schema.ts';
import { encryptSecret } from '../../../sites/manifest/secrets.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';
import { FACTS, PRIVATE_LINE, serviceAccountJson } from '../../support/service-account.ts';

let daemon: MemoryDaemon;
afterEach(() => daemon.close());

const JSON_KEY = JSON.stringify(serviceAccountJson());

test('a site with an unusable service account stays as applied, and says why without showing the key', async () => {
  daemon = await memoryDaemon();
  const elsewhere = await identityToRecipient(await generateIdentity());
  const account = async (text: string, extra = {}, recipient = daemon.recipient) => ({
    ...FACTS,
    key: await encryptSecret(recipient, text),
    ...extra,
  });
  const push = async (serviceAccount: NonNullable<ManifestInput['serviceAccount']>) =>
    await daemon.push('one', formatManifest(daemon.manifest('one', 0, { name: 'Renamed', serviceAccount })));
  await daemon.push('one', formatManifest(daemon.manifest('one', 0)));
  await daemon.reaches('one', 'Ready');
  const before = daemon.objectCount('one');

  const unusable = [
    [await account(JSON_KEY, {}, elsewhere), 'UndecryptableConfig', /serviceAccount\.key can't be decrypted/],
    [
      await account('no JSON'),
      'InvalidManifest',
      /serviceAccount\.key is not the key of a service account: must be a JSON object/,
    ],
    [
      await account(JSON.stringify(serviceAccountJson({ type: 'authorized_user' }))),
      'InvalidManifest',
      /type must be service_account/,
    ],
    [
      await account(JSON_KEY, { projectId: 'another-project' }),
      'InvalidManifest',
      /serviceAccount\.projectId differs from that of serviceAccount\.key/,
    ],
  ] as const;
  daemon.applied.length = 0;
  for (const [serviceAccount, reason, message] of unusable) {
    await push(serviceAccount);
    const expected = { ready: false, reason, message: expect.stringMatching(message) };
    await eventually(() => expect(daemon.loop.status('one')).toMatchObject(expected));
    expect(JSON.stringify(daemon.loop.status('one'))).not.toContain(PRIVATE_LINE);
  }
  expect(daemon.applied).toEqual([]);
  expect(daemon.objectCount('one')).toBe(before);

  // What is applied stays in force: it is repaired, also after a restart of the daemon.
  for (const restart of [async () => undefined, () => daemon.restart()]) {
    await restart();
    daemon.applied.length = 0;
    const [key = ''] = daemon.of('containers', 'one');
    daemon.world('containers').delete(key);
    await daemon.fullPass();
    await eventually(() => expect(daemon.of('containers', 'one')).toEqual([key]));
    expect(daemon.applied).toMatchObject([{ target: 'containers', op: 'create', key }]);
    await eventually(() =>
      expect(daemon.loop.status('one')).toMatchObject({ reason: 'InvalidManifest', ready: false }),
    );
  }

  await push(await account(JSON_KEY));
  expect(await daemon.reaches('one', 'Ready')).toMatchObject({ ready: true });
});
