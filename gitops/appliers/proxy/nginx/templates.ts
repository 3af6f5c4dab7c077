import { readFileSync } from 'node:fs';

const text = (name: string) => readFileSync(new URL(`./templates/${name}.hbs`, import.meta.url), 'utf8');

/**
 * The templates of the configuration. All values are validated before they are rendered.
 *  There is a server for each name and an upstream for each set of containers. Measured with drafts for 1,000 sites
 * with three names and a certificate each (nginx 1.22, OpenSSL 3.0, two cores): `nginx -t` 2.1 s, a reload 3.4 s, 206
 * MiB, and up to 693 MiB until old workers have ended. (`npm run bench:host` measures the real templates: 3.3 s of CPU,
 * 299 MiB and 986 MiB.) Nearly all of this is for the TLS contexts of the certificates. Without upstream blocks, nginx
 * takes 20 MiB less, but keeps no connections to upstreams open. A log for each site takes 0.1 s, shared zones for
 * limits nothing, zones for each site 24 MiB.
 *  The alternative is one server for all names, with maps and the certificate's path in a variable: `nginx -t` 0.07 s,
 * a reload 0.1 s, 34 MiB. It was rejected: workers would need to read every private key, at each handshake; `nginx -t`
 * would check no certificate, so visitors would find a bad one; and workers would have to open the logs. A slow reload
 * delays only the site that changes.
 */
export const TEMPLATES = {
  nginx: text('nginx'),
  http: text('http'),
  treatment: text('treatment'),
  version: text('version'),
  containers: text('containers'),
  forward: text('forward'),
  platform: text('platform'),
  custom: text('custom'),
  policy: text('policy'),
  challenge: text('challenge'),
  place: text('place'),
} as const;
export type Templates = typeof TEMPLATES;
