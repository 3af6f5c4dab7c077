import { afterEach, expect, test } from 'vitest';
import { formatManifest, parseManifest } from '../../../sites/manifest/load.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';

let daemon: MemoryDaemon;
afterEach(() => daemon.close());

const bomb = `a: &a [x,x,x,x]\n${Array.from({ length: 20 }, (_, n) => `b${n}: &b${n} [*a,*a,*a,*a]`).join('\n')}\n`;

test.each<[string, (text: string) => string, string, RegExp]>([
  [
    'of a later version',
    (text) => `${text.replace('version: 1', 'version: 2')}futureKey: 1\n`,
    'UnsupportedVersion',
    /yaml:1: version: version 2 is newer than this release understands \(1\)/,
  ],
  ['of 300 KiB', (text) => `${text}# ${'x'.repeat(300 * 1024)}\n`, 'InvalidManifest', /larger than 256 KiB/],
  ['of 16 MiB', (text) => `${text}# ${'x'.repeat(2 ** 24)}\n`, 'InvalidManifest', /larger than 256 KiB/],
  ['with an alias bomb', (text) => text + bomb, 'InvalidManifest', /anchors and aliases/],
  ['nested deeply', (text) => `${text}x: ${'['.repeat(10_000)}\n`, 'InvalidManifest', /nested too deeply/],
])(
  'a manifest %s changes nothing of its site, creates none, and affects no other',
  async (_what, spoil, reason, says) => {
    daemon = await memoryDaemon();
    const text = (site: string, number: number, extra = {}) =>
      formatManifest(daemon.manifest(site, number, extra));
    await daemon.push('one', text('one', 0));
    await daemon.reaches('one', 'Ready');
    const before = daemon.objectCount('one');
    const message = expect.stringMatching(says);

    for (const [site, number] of [['one', 0] as const, ['new', 1] as const]) {
      const { revision } = await daemon.push(site, spoil(text(site, number, { name: 'Renamed' })));
      // Each reader refuses the text, or the placeholder of a text over the limit.
      const file = await daemon.repo.readSite(revision, site);
      expect(parseManifest(file?.text ?? '', `${site}.yaml`)).toMatchObject({ ok: false, reason });
      expect(file?.text.length).toBeLessThan(300 * 1024 + 2_000);
      expect(await daemon.reaches(site, reason)).toMatchObject({ ready: false, message });
    }
    await daemon.push('two', text('two', 2));
    await daemon.reaches('two', 'Ready');
    daemon.applied.length = 0;
    for (const known of [{}, { known: null }]) {
      await daemon.restart(known);
      for (const site of ['one', 'new'])
        expect(await daemon.reaches(site, reason)).toMatchObject({ message });
      await daemon.fullPass();
    }
    expect(daemon.applied).toEqual([]);
    expect([daemon.objectCount('one'), daemon.objectCount('new')]).toEqual([before, 0]);

    await daemon.push('one', text('one', 0));
    await daemon.reaches('one', 'Ready');
  },
);
