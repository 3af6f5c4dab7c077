import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { assignProxyPorts } from '../../../../gitops/appliers/proxy/ports.ts';

let file: string;
beforeEach(async () => {
  file = join(await mkdtemp(join(tmpdir(), 'tagyard-ports-')), 'ports.json');
});
afterEach(() => rm(join(file, '..'), { recursive: true }));

const assign = (tlsPort = 0) => assignProxyPorts(file, ['127.0.0.1'], { httpPort: 0, tlsPort });

test('ports are picked once, all different, and read back', async () => {
  const first = await assign();
  expect(first.httpPort).toBeGreaterThan(0);
  expect(first.tlsPort).not.toBe(first.httpPort);
  expect(await assign()).toEqual(first);
});

test('a configured port is used as it is', async () => {
  expect(await assign(8443)).toMatchObject({ tlsPort: 8443 });
});

test('a corrupt file is replaced', async () => {
  await writeFile(file, '{"httpPort":');
  expect(await assign()).toEqual(await assign());
});
