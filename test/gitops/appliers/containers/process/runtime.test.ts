import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { KeyFiles } from '../../../../../gitops/appliers/containers/key-files.ts';
import { processRuntime } from '../../../../../gitops/appliers/containers/process/runtime.ts';
import { TAG_SERVER_ENTRY } from '../../../../../sites/local/demo/tag-server/entry.ts';
import { containerSpecs } from '../../../../../sites/manifest/containers.ts';
import { Secret } from '../../../../../sites/manifest/secrets.ts';
import { Slots } from '../../../../../sites/manifest/slots.ts';
import { loadedManifest } from '../../../../support/manifest.ts';

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'tagyard-processes-'));
});
afterEach(() => rm(home, { recursive: true, force: true }));

test('a start fails if the key folder can’t be read, and the next start reads it again', async () => {
  const [spec] = containerSpecs(loadedManifest(), { slots: new Slots('127.93'), originPort: 443 });
  if (spec === undefined) throw new Error('the site has no containers');
  const keys = join(home, 'keys');
  const keyFiles = new KeyFiles(keys, null);
  await keyFiles.write('of-an-earlier-daemon', new Secret('key'));
  await rm(keys, { recursive: true });
  await writeFile(keys, 'in the place of the folder');
  const runtime = processRuntime({ entry: TAG_SERVER_ENTRY, stopGraceSeconds: 1, keyFiles });
  const launch = { name: 'one', mark: 'mark', spec };
  const { signal } = new AbortController();
  await expect(runtime.start(launch, signal)).rejects.toThrow('ENOTDIR');
  await rm(keys);
  await keyFiles.write('of-an-earlier-daemon', new Secret('key'));
  try {
    const id = await runtime.start(launch, signal);
    expect(await runtime.list(new Set(), signal)).toMatchObject([{ id, name: 'one' }]);
    expect(await keyFiles.names()).toEqual([]);
  } finally {
    await runtime.close();
  }
});
