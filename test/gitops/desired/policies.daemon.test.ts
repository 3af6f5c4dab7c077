import { afterEach, beforeEach, expect, test } from 'vitest';
import { DesiredStateReader } from '../../../gitops/desired/reader.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';
import { ZONES } from '../../support/manifest.ts';

const ACME = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
const OTHER = '00000000-0000-4000-8000-000000000001';
const OWN = `clients/${ACME}.policy.js`;
const deny = (name: string) => `gtag('policy', 'send_http', () => '${name}');\n`;

let daemon: MemoryDaemon;
let reader: DesiredStateReader;
beforeEach(async () => {
  daemon = await memoryDaemon();
  await daemon.push('one', daemon.manifest('one', 0, { client: ACME }));
  await daemon.push('two', daemon.manifest('two', 1, { client: OTHER }));
  await daemon.reaches('two', 'Ready');
  reader = new DesiredStateReader(daemon.repo, {
    host: 'tag-1',
    zones: ZONES,
    ageIdentity: daemon.ageIdentity,
  });
});
afterEach(() => daemon.close());

/** The sites of the newest revision. */
async function read() {
  const { sites } = await reader.read((await daemon.repo.head()) ?? '');
  const siteOf = (name: string) => {
    const site = sites.get(name);
    if (site === undefined) throw new Error(`no site ${name}`);
    return site;
  };
  return { one: siteOf('one'), two: siteOf('two') };
}

test('a site has the instance’s script, then its client’s; other sites stay the same objects', async () => {
  const none = await read();
  expect(none.one.manifest).not.toHaveProperty('policy');
  await daemon.push(OWN, deny('client'));
  const own = await read();
  expect(own.two).toBe(none.two);
  expect(own.one.manifest?.policy?.text).toBe(`(function () {\n${deny('client')}\n})();\n`);

  await daemon.push('policy.js', deny('instance'));
  const both = await read();
  expect(both.one.manifest?.policy?.text).toMatch(/'instance'[\s\S]*'client'/);
  expect(both.one.manifest?.policy?.hash).not.toBe(own.one.manifest?.policy?.hash);
  expect(both.two.manifest?.policy?.text).toMatch(/'instance'/);
  // A commit that changes neither script changes neither site.
  await daemon.push('notes', null);
  await daemon.push('policy.js.txt', 'x');
  const later = await read();
  expect([later.one, later.two]).toEqual([both.one, both.two]);
  expect(later.one).toBe(both.one);

  await daemon.push(OWN, null);
  await daemon.push('policy.js', null);
  const gone = await read();
  expect(gone.one).toBe(none.one);
  expect(gone.two).toBe(none.two);
});

test('a script is no manifest: its removal removes no site', async () => {
  await daemon.push('policy.js', deny('x'));
  await daemon.push(OWN, deny('x'));
  await daemon.push('policy.js', null);
  await daemon.push(OWN, null);
  await daemon.hasRead((await daemon.repo.head()) ?? '');
  const { body } = await daemon.call('GET', '/sites');
  const statuses = body.sites.map(({ site, reason }: { site: string; reason: string }) => [site, reason]);
  expect(statuses.sort()).toEqual([
    ['one', 'Ready'],
    ['two', 'Ready'],
  ]);
});

test('a script that can’t be parsed stops changes of its sites only, and their status names the line', async () => {
  await daemon.push(OWN, `${deny('a')}gtag('policy', 'all', (\n`);
  await daemon.push('one', daemon.manifest('one', 0, { client: ACME, name: 'Renamed' }));
  await daemon.reaches('one', 'InvalidManifest');
  expect(daemon.loop.status('one')?.message).toMatch(`${OWN}:3: Unexpected end`);
  expect(daemon.loop.status('two')?.reason).toBe('Ready');
  await daemon.push(OWN, deny('a'));
  await daemon.reaches('one', 'Ready');
  await daemon.push('policy.js', 'return 1;');
  await daemon.reaches('two', 'InvalidManifest');
  await daemon.push('policy.js', null);
  await daemon.reaches('two', 'Ready');
});
