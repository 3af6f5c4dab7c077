import { nginxBackend } from '../../../gitops/appliers/proxy/nginx/backend.ts';
import type { NginxSettings } from '../../../gitops/appliers/proxy/nginx/settings.ts';
import { plainFiles } from './proxy.ts';

/**
 * A process that owns an nginx, so that a test can kill it: settings as JSON in the first argument, the folder of the
 * certificates in the second. Says its endpoint once it serves, and stays.
 */
const [, , json = '{}', certificates = ''] = process.argv;
const settings = JSON.parse(json) as NginxSettings; // the test's own settings, but the certificates
const backend = nginxBackend({ ...settings, certificates: plainFiles(certificates) });
process.stdout.write(`${JSON.stringify(await backend.start())}\n`);
setInterval(() => undefined, 60_000);
