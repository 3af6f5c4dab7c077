import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { NginxDaemon } from '../../../../gitops/appliers/proxy/nginx/daemon.ts';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tagyard-nginx-'));
});
afterEach(() => rm(dir, { recursive: true }));

// What nginx 1.22 writes for each cause.
test.each([
  ['unknown directive "x" in /p/candidate/sites/acme.conf:3', true],
  ['host not found in upstream "edge.example" in /p/candidate/sites/acme.conf:12', false],
  ['socket() 127.0.0.1:443 failed (24: Too many open files)', false],
  ['open() "/p/logs/sites/acme.log" failed (28: No space left on device)', false],
  [
    'open() "/p/candidate/sites/acme.conf" failed (13: Permission denied) in /p/candidate/nginx.conf:38',
    false,
  ],
  ['unknown directive "x" in /p/candidate/nginx.conf:3', false],
])(
  'a refusal is the site’s fault only if nginx names the site’s file and the cause isn’t the system: %s',
  async (said, isOfSite) => {
    const bin = join(dir, 'nginx');
    await writeFile(join(dir, 'said'), `nginx: [emerg] ${said}\nnginx: configuration file test failed\n`);
    await writeFile(bin, `#!/bin/sh\ncat '${join(dir, 'said')}' >&2\nexit 1\n`, { mode: 0o755 });
    const daemon = new NginxDaemon({ bin, prefix: dir, statusPort: 1, timeoutMs: 1_000 });
    expect(await daemon.test()).toMatchObject({
      error: { message: `nginx refuses it: ${said}`, isOfSite },
    });
  },
);
