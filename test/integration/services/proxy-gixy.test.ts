import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import type { ProxyBackend, ProxySettings } from '../../../gitops/appliers/proxy/backend.ts';
import { nginxBackend } from '../../../gitops/appliers/proxy/nginx/backend.ts';
import { stopNginx } from '../../../gitops/appliers/proxy/nginx/process.ts';
import { describeWith, GIXY } from '../../support/components.ts';
import { gatewayBackend } from '../../support/gateway/backend.ts';
import { NGINX_SETTINGS } from '../../support/proxy/nginx.ts';
import { proxyHome, put } from '../../support/proxy/proxy.ts';

const upstreams = [{ address: '127.0.0.1', port: 9 }];
/** The checks that are left out, and why. */
const SKIPPED = {
  hsts_header: 'tag servers and the edge decide which headers visitors get, because the answers are theirs',
  worker_rlimit_nofile_vs_connections:
    'Node, which starts nginx, has raised the limit to the most that is allowed',
};
const found = z.array(z.looseObject({ plugin: z.string(), severity: z.string(), config: z.string() }));

describeWith(['nginx', 'gixy'], 'gixy', () => {
  let home: Awaited<ReturnType<typeof proxyHome>>;
  beforeEach(async () => {
    home = await proxyHome();
  });
  afterEach(async () => {
    await stopNginx(home.settings.prefix);
    await home.remove();
  });

  test.each([
    ['a host', (settings: ProxySettings) => nginxBackend({ ...settings, ...NGINX_SETTINGS })],
    ['a gateway', gatewayBackend],
  ] satisfies [string, (settings: ProxySettings) => ProxyBackend][])(
    'finds nothing in the configuration of %s',
    async (_, create) => {
      const backend = create({ ...home.settings, challengeKey: 'k'.repeat(43) });
      try {
        await backend.start();
        const outcomes = await backend.install([
          put('acme', {
            site: 'acme',
            vhosts: [
              { kind: 'origin', host: 'acme-origin.example.net', upstreams },
              { kind: 'preview', host: 'acme-preview.example.net', upstreams },
            ],
          }),
          put('acme/tags.acme.example', {
            site: 'acme',
            vhosts: [{ kind: 'custom', host: 'tags.acme.example', edgeHost: 'acme.example.net' }],
          }),
          put('acme/policy', {
            site: 'acme',
            vhosts: [
              {
                ...{ kind: 'policy', host: 'acme-policy-01234', tls: 'inside' },
                ...{ token: '0123456789abcdef'.repeat(2), script: 'f("$host");' },
              },
            ],
          }),
        ]);
        expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
        const tree = await realpath(join(home.settings.prefix, 'current'));
        const args = ['--format', 'json', '--skips', Object.keys(SKIPPED).join()];
        const { stdout } = await execa(GIXY, [...args, join(tree, 'nginx.conf')], { reject: false });
        const issues = found.parse(JSON.parse(stdout));
        expect(issues).toEqual([]);
      } finally {
        await backend.close();
      }
    },
  );
});
