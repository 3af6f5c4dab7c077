import { readFileSync } from 'node:fs';

const text = (name: string) => readFileSync(new URL(`./templates/${name}.hbs`, import.meta.url), 'utf8');

/**
 * The configuration's shape, part of this release: all that varies is validated before it is put in.
 *
 * A server for each name, and an upstream for each set of containers. Sketches of 1,000 sites with three names and a
 * certificate each (nginx 1.22, OpenSSL 3.0, two cores; `npm run bench:host` measures the real thing, which was 3.3 s
 * of CPU, 299 MiB and 986 MiB): `nginx -t` 2.1 s, a reload 3.4 s, 206 MiB, 693 MiB at most while workers of before end. The certificates' contexts are nearly all of it: leaving the upstream blocks out saves
 * 20 MiB and costs keep-alive; a log for each site adds 0.1 s, shared zones for the limits nothing (zones for each
 * site: 24 MiB). One server for all names, with maps and the certificate's path in a variable, takes 0.07 s, 0.1 s and
 * 34 MiB. It was not taken: workers would need the right to read every key and read it at each handshake, `nginx -t`
 * would see no certificate, so that a bad one is found by its visitors, and logs would be opened by the workers. A
 * reload is waited for by nobody but the site that changes.
 */
export const TEMPLATES = {
  nginx: text('nginx'),
  http: text('http'),
  treatment: text('treatment'),
  version: text('version'),
  containers: text('containers'),
  custom: text('custom'),
  challenge: text('challenge'),
} as const;
export type Templates = typeof TEMPLATES;
