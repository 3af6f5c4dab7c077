import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { afterEach, expect, test } from 'vitest';
import { embeddedBackend } from '../../../gitops/appliers/proxy/embedded/backend.ts';
import { tagyardHere } from '../../support/cli/in-process.ts';
import { describeWith } from '../../support/components.ts';
import { type CertificatesDaemon, certificatesDaemon } from '../../support/gitops/certificates-daemon.ts';

const ORIGIN = 'acme-shop-origin.example.net';

describeWith(['knot', 'pebble'], 'a host that is lost with its ACME account', () => {
  let daemon: CertificatesDaemon | undefined;
  let dir: string | undefined;
  afterEach(async () => {
    await daemon?.close();
    if (dir !== undefined) await rm(dir, { recursive: true });
  });

  test('serves the same certificates after a restore, and orders none', async () => {
    dir = await mkdtemp(join(tmpdir(), 'tagyard-lost-'));
    daemon = await certificatesDaemon(embeddedBackend, { subnet: '127.95' });
    const { directory, sitesRepo, pebble, call, site, isReady, restart, stored } = daemon;
    const made = await call('POST', '/provision?wait=60', await site('acme-shop', 1));
    expect(made).toMatchObject({ status: 200, body: { operation: { status: 'succeeded' } } });
    const [authority = ''] = await readdir(join(directory, 'acme'));
    const served = () => stored(authority, 'names', `${ORIGIN}.pem`);
    const account = () => stored(authority, 'account.key');
    const before = [await served(), await account()];
    const orders = pebble.orders();
    expect(orders).toBe(2);

    const settings = join(dir, 'provisioner.env');
    const lines = [
      `STATE_DIR=${directory}`,
      `SITES_REPO=${sitesRepo}`,
      `LOCAL_CA_DIR=${join(directory, 'ca')}`,
    ];
    await writeFile(settings, lines.join('\n'));
    const identity = await generateIdentity();
    await writeFile(join(dir, 'identity'), identity);
    const file = join(dir, 'host.age');
    const to = await identityToRecipient(identity);
    expect(await tagyardHere('', ['backup', file, '--recipient', to, '--settings', settings])).toMatchObject({
      exitCode: 0,
      stderr: '',
    });

    await restart(async () => {
      for (const name of await readdir(directory)) await rm(join(directory, name), { recursive: true });
      const restored = await tagyardHere('', ['restore', file, '--identity', join(dir ?? '', 'identity')]);
      expect(restored).toMatchObject({ exitCode: 0, stderr: '' });
    });
    await isReady('acme-shop');
    expect([await served(), await account()]).toEqual(before);
    expect((await daemon.ask({ host: ORIGIN })).status).toBe(200);
    expect(pebble.orders()).toBe(orders);
    expect(await readFile(settings, 'utf8')).toBe(lines.join('\n'));
  });
});
