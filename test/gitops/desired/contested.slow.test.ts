import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { formatManifest } from '../../../sites/manifest/load.ts';
import { encryptFor, encryptSecret } from '../../../sites/manifest/secrets.ts';
import { git } from '../../../sites/repo/git/git.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';

let daemon: MemoryDaemon;
beforeEach(async () => {
  daemon = await memoryDaemon();
});
afterEach(() => daemon.close());

describe('a name that two sites claim', () => {
  const rival = (extra = {}) =>
    daemon.manifest('aaa-rival', 2, { hostnames: daemon.manifest('acme', 1).hostnames, ...extra });
  const holds = async () => {
    await daemon.reaches('acme', 'Ready');
    expect(await daemon.reaches('aaa-rival', 'NameTaken')).toMatchObject({ ready: false });
    expect(daemon.objectCount('aaa-rival')).toBe(0);
  };

  test('stays with the older site over many passes, after restarts, and with all state lost', async () => {
    await daemon.push('acme', daemon.manifest('acme', 1));
    await daemon.push('aaa-rival', rival());
    await holds();
    daemon.applied.length = 0;
    for (const known of [{}, {}, { known: null }, { known: null }]) {
      await daemon.restart(known);
      for (let passes = 0; passes < 5; passes += 1) {
        await daemon.fullPass();
        await holds();
      }
      // An edit doesn't change the age of a claim.
      await daemon.push('aaa-rival', rival({ name: `Edited ${daemon.loop.passes}` }));
      await daemon.fullPass();
      await holds();
    }
    expect(daemon.applied).toEqual([]);
  });

  test('stays with the older site after 250 edits of that site', async () => {
    await daemon.push('acme', daemon.manifest('acme', 1));
    await daemon.push('aaa-rival', rival());
    await holds();
    const text = (name: string) => formatManifest(daemon.manifest('acme', 1, { name }));
    const commits = Array.from({ length: 250 }, (_, number) => {
      const body = text(`Edit ${number}`);
      const from = number === 0 ? 'from refs/heads/main^0\n' : '';
      return `commit refs/heads/main\ncommitter Op <op@example.test> ${number} +0000\ndata 1\nx\n${from}M 100644 inline acme.yaml\ndata ${Buffer.byteLength(body)}\n${body}\n`;
    });
    await git(daemon.sitesRepo, ['fast-import', '--quiet', '--done'], { input: `${commits.join('')}done\n` });
    for (const known of [{}, { known: null }]) {
      await daemon.restart(known);
      await daemon.fullPass();
      await holds();
    }
  });

  describe('through a merge', () => {
    /** Commits these files to a branch; with `merged`, as a merge commit. */
    async function commit(branch: string, from: string, files: Record<string, string>, merged?: string) {
      const written = Object.entries(files).map(
        ([site, text]) => `M 100644 inline ${site}.yaml\ndata ${Buffer.byteLength(text)}\n${text}\n`,
      );
      const parents = `from ${from}\n${merged === undefined ? '' : `merge ${merged}\n`}`;
      const body = `commit ${branch}\ncommitter Op <op@example.test> 1 +0000\ndata 0\n${parents}${written.join('')}`;
      await git(daemon.sitesRepo, ['fast-import', '--quiet', '--done', '--force'], {
        input: `${body}done\n`,
      });
    }
    const other = (name: string) => daemon.push('other', daemon.manifest('other', 3, { name }));
    const text = {
      acme: () => formatManifest(daemon.manifest('acme', 1)),
      rival: () => formatManifest(rival()),
    };
    let fork: string;
    beforeEach(async () => {
      fork = (await other('Before')).revision;
    });

    test('stays with the site that had it on this branch, even if an older claim is merged', async () => {
      await commit('refs/heads/side', fork, { 'aaa-rival': text.rival() });
      for (const name of ['One', 'Two', 'Three']) await other(name);
      await daemon.push('acme', text.acme());
      await daemon.reaches('acme', 'Ready');
      await commit('refs/heads/main', 'refs/heads/main^0', { 'aaa-rival': text.rival() }, 'refs/heads/side');
      await daemon.fullPass();
      await holds();
    });

    test('stays with the older site if the same merge brings both sites', async () => {
      await commit('refs/heads/side', fork, {});
      await daemon.push('acme', text.acme());
      await daemon.push('aaa-rival', text.rival());
      await holds();
      const files = { acme: text.acme(), 'aaa-rival': text.rival() };
      await commit('refs/heads/side', 'refs/heads/side^0', files, 'refs/heads/main');
      await git(daemon.sitesRepo, ['update-ref', 'refs/heads/main', 'refs/heads/side']);
      await daemon.fullPass();
      await holds();
    });
  });
});

describe('a name that is the installation’s own', () => {
  test.each([
    ['edge: acme.example.net', 'edge: example.net', 'is the zone of all sites’ hostnames'],
    ['origin: acme-origin.example.net', 'origin: example.net', 'is the zone of all sites’ hostnames'],
    ['edge: acme.example.net', 'edge: tags.acme.example', 'is not in example.net (EDGE_DOMAIN)'],
    ['edge: acme.example.net', 'edge: evil-example.net', 'is not in example.net (EDGE_DOMAIN)'],
    ['preview: acme-preview.example.net', 'preview: tag-1.example.net', 'is the host’s own'],
    ['domain: acme.example', 'domain: example.net', 'is example.net, the zone of all sites’ hostnames'],
  ])('is given to no site by git: not %s → %s', async (own, other, said) => {
    const valid = formatManifest(daemon.manifest('acme', 1));
    await daemon.push('acme', valid);
    const before = await daemon.reaches('acme', 'Ready');
    await daemon.push('acme', valid.replace(own, other));
    const status = await daemon.reaches('acme', 'NameTaken');
    expect(status).toMatchObject({ message: expect.stringContaining(said), applied: before?.applied });
    // A version that can't be read puts no refused one in force.
    await daemon.push('acme', 'version: 1\n');
    await daemon.reaches('acme', 'NameTaken');
    await daemon.push('acme', valid);
    await daemon.reaches('acme', 'Ready');
  });

  test('stays with a site to which an older release applied it, with other edits', async () => {
    const manifest = daemon.manifest('acme', 1);
    const edge = 'tag-1.example.net';
    const { revision } = await daemon.push('acme', {
      ...manifest,
      hostnames: { ...manifest.hostnames, edge },
    });
    const status = { ...(await daemon.reaches('acme', 'NameTaken')), applied: revision };
    await daemon.restart({ known: { revision, sites: [status] as never } });
    const hostnames = { ...manifest.hostnames, edge };
    await daemon.push('acme', { ...manifest, hostnames, name: 'Edited' });
    expect(await daemon.reaches('acme', 'Ready')).toMatchObject({ applied: daemon.loop.revision });
    await daemon.push('acme', { ...manifest, hostnames: { ...hostnames, edge: 'example.net' } });
    await daemon.reaches('acme', 'NameTaken');
  });
});

describe('another site’s secret', () => {
  const client = '7c9e6679-7425-40de-944b-e07fc1f90aff';

  test('is refused where it is bound to its container, in the manifest of the same client, too', async () => {
    const acme = daemon.manifest('acme', 1);
    const containerConfig = await encryptFor(daemon.recipient, acme.container, daemon.config);
    await daemon.push('acme', { ...acme, containerConfig });
    await daemon.reaches('acme', 'Ready');
    await daemon.push('thief', daemon.manifest('thief', 2, { containerConfig }));
    const status = await daemon.reaches('thief', 'InvalidManifest');
    expect(status?.message).toContain('containerConfig was encrypted for another container');
    expect(daemon.objectCount('thief')).toBe(0);
    // No edit by the API makes it the site's own.
    await daemon.call('POST', '/sites/thief/suspend', {});
    await daemon.call('POST', '/sites/thief/resume', {});
    expect(await daemon.reaches('thief', 'InvalidManifest')).toMatchObject({ applied: null });
  });

  test('is refused to another client where it isn’t bound, however it is written, until a change binds it', async () => {
    const containerConfig = await encryptSecret(daemon.recipient, daemon.config);
    await daemon.push('acme', daemon.manifest('acme', 1, { containerConfig }));
    await daemon.reaches('acme', 'Ready');
    const checks = async () => JSON.stringify((await daemon.call('GET', '/health')).body);
    expect(await checks()).toContain(
      'not bound to their site yet; the next change by the API binds them: acme',
    );
    await daemon.push(
      'aaa-thief',
      daemon.manifest('aaa-thief', 2, { client, containerConfig: `${containerConfig.trim()}` }),
    );
    const status = await daemon.reaches('aaa-thief', 'NameTaken');
    expect(status?.message).toContain('belongs to the client of the site acme');
    await daemon.call('POST', '/sites/acme/suspend', {});
    await daemon.call('POST', '/sites/acme/resume', {});
    await daemon.reaches('acme', 'Ready');
    await eventually(async () => expect(await checks()).not.toContain('not bound'));
  });
});
