import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';
import { type Operator, operator } from '../../support/operator.ts';

const ID = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
let daemon: MemoryDaemon;
let op: Operator;
beforeEach(async () => {
  daemon = await memoryDaemon();
  await daemon.push('one', daemon.manifest('one', 0));
  await daemon.reaches('one', 'Ready');
  op = await operator(daemon.sitesRepo);
});
afterEach(async () => {
  op[Symbol.dispose]();
  await daemon.close();
});

const at = (...path: string[]) => join(op.clone, ...path);

test('files of clients and organisations are no sites, whatever they contain', async () => {
  for (const folder of ['clients', 'organisations']) {
    mkdirSync(at(folder));
    writeFileSync(at(folder, `${ID}.yaml`), `version: 1\nid: ${ID}\nname: "x, site: one"\n`);
  }
  await op.publishAll('Add a client');
  await daemon.push('two', daemon.manifest('two', 1));
  await daemon.reaches('two', 'Ready');
  const { body } = await daemon.call('GET', '/sites');
  const statuses = body.sites.map(({ site, reason }: { site: string; reason: string }) => [site, reason]);
  expect(statuses.sort()).toEqual([
    ['one', 'Ready'],
    ['two', 'Ready'],
  ]);
});

test('a site is removed even if the text of a client’s file names it', async () => {
  for (const [index, site] of ['two', 'three', 'four', 'five'].entries()) {
    await daemon.push(site, daemon.manifest(site, index + 1));
    await daemon.reaches(site, 'Ready');
  }
  await op.refresh();
  mkdirSync(at('clients'));
  writeFileSync(at('clients', `${ID}.yaml`), `version: 1\nid: ${ID}\nname: "x, site: one"\n`);
  rmSync(at('one.yaml'));
  await op.publishAll('Remove one');
  await eventually(() => expect(daemon.objectCount('one')).toBe(0));
});

test('a manifest in the clients’ folder is misplaced, and its site stays', async () => {
  mkdirSync(at('clients'));
  renameSync(at('one.yaml'), at('clients', 'one.yaml'));
  await op.publishAll('Move one');
  await daemon.reaches('one', 'InvalidManifest');
});
