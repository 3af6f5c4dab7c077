import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readRun, removeRun, writeRun } from '../../../../gitops/cli/instance/run-file.ts';
import type { Run } from '../../../../gitops/cli/instance/run-schema.ts';
import { CliError } from '../../../../gitops/cli/output/cli-error.ts';

const address = { url: 'http://127.0.0.1:8080' };
const RUN: Run = {
  pid: 1,
  management: address,
  provisioner: { ...address, secret: 's' },
  edge: address,
  verification: address,
  cloudflare: { ...address, accountId: 'a' },
  proxy: address,
  sitesRepo: '/home/sites.git',
  database: 'pglite',
  drivers: { dns: 'cloudflare-emulator', edge: 'workerd', proxy: 'embedded', containers: 'process' },
  demo: { clientId: 'c', token: 't', container: 'id', pageUrl: 'http://shop.localhost:1/' },
};

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tagyard-run-'));
  path = join(folder, 'run.json');
});
afterEach(() => rm(folder, { recursive: true }));

test('a written run is read back', async () => {
  await writeRun(path, RUN);
  expect(await readRun(path)).toEqual(RUN);
});

test('a removed run is gone, and a second removal is no error', async () => {
  await writeRun(path, RUN);
  await removeRun(path);
  await removeRun(path);
  await expect(readRun(path)).rejects.toThrow(CliError);
});

test.each([
  ['is missing', null],
  ['is no JSON', '{'],
  ['lacks a member', JSON.stringify({ ...RUN, provisioner: undefined })],
])('a run file that %s is an error that names the next step', async (_what, text) => {
  if (text !== null) await writeFile(path, text);
  await expect(readRun(path)).rejects.toThrow(/no instance runs here .*run\.json.* run npm start/);
});
