import { execFile } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../support/components.ts';
import { temporaryFolder } from '../support/package/folder.ts';

const UNITS = fileURLToPath(new URL('../../deploy/systemd', import.meta.url));
const names = readdirSync(UNITS);
const analyze = (...args: string[]) => promisify(execFile)('systemd-analyze', args);

describeWith('systemd', 'the units of systemd', () => {
  const root = temporaryFolder();
  const at = (path: string) => join(root.path, path);
  beforeAll(() => {
    for (const folder of ['usr/bin', 'etc/systemd/system', 'etc/tagyard', 'opt/tagyard']) {
      mkdirSync(at(folder), { recursive: true });
    }
    cpSync('/usr/lib/systemd/system', at('usr/lib/systemd/system'), { recursive: true });
    writeFileSync(at('usr/bin/node'), '#!/bin/sh\n');
    chmodSync(at('usr/bin/node'), 0o755);
    for (const name of names) copyFileSync(join(UNITS, name), at(`etc/systemd/system/${name}`));
  });
  afterAll(() => root[Symbol.dispose]());

  test('are one for each daemon', () => {
    expect(names.sort()).toEqual(['tagyard-management.service', 'tagyard-provisioner.service']);
  });

  test.each(names)('%s is valid, without a warning', async (name) => {
    const { stderr } = await analyze('verify', `--root=${root.path}`, at(`etc/systemd/system/${name}`));
    expect(stderr).not.toContain(name);
  });

  // The threshold is ten times the exposure level that `systemd-analyze security` shows.
  test.each([
    ['tagyard-provisioner.service', 30],
    ['tagyard-management.service', 20],
  ])('%s has an exposure level of at most %d tenths', async (name, tenths) => {
    const args = ['security', '--offline=true', '--no-pager', `--threshold=${tenths}`, join(UNITS, name)];
    await expect(analyze(...args)).resolves.toMatchObject({ stdout: expect.stringContaining('OK') });
  });
});
