import { afterEach, expect, it } from 'vitest';
import { nginxBackend } from '../../gitops/appliers/proxy/nginx/backend.ts';
import {
  type CertificatesDaemon,
  certificatesDaemon,
  type Options,
} from '../fixtures/gitops/certificates-daemon.ts';
import { describeWith } from '../helpers/components.ts';
import { NGINX } from '../helpers/nginx.ts';

describeWith(['nginx', 'knot', 'pebble'], 'certificates that are ordered', () => {
  let daemon: CertificatesDaemon;
  const open = async (options: Partial<Options> = {}) => {
    daemon = await certificatesDaemon(
      (settings) => nginxBackend({ ...settings, bin: NGINX, workerProcesses: 1 }),
      { subnet: '127.94', ...options },
    );
    return daemon;
  };
  afterEach(() => daemon.close());

  it('come by themselves for a new site, from an authority that refuses nonces', async () => {
    await open({ pebble: { refusedNonces: 15 } });
    await daemon.push('acme-shop', await daemon.site('acme-shop', 1));
    await daemon.isReady('acme-shop');
    const origin = 'acme-shop-origin.example.net';
    expect((await daemon.ask({ host: origin })).status).toBe(200);
    expect(await daemon.certificate('acme-shop', origin)).toMatchObject({ state: 'live', reason: '' });
  });
});
