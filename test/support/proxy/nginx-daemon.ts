import { nginxBackend } from '../../../gitops/appliers/proxy/nginx/backend.ts';
import type { NginxSettings } from '../../../gitops/appliers/proxy/nginx/settings.ts';
import { plainFiles } from './proxy.ts';

/**
 * A process that owns an nginx, so that a test can kill both. The first argument is the settings as JSON, the second
 * one is the folder of the certificates. Prints its endpoint when it serves. On SIGTERM, stops as the daemon does.
 */
const [, , json = '{}', certificates = ''] = process.argv;
const settings = JSON.parse(json) as NginxSettings; // the test's own settings, without the certificates
const backend = nginxBackend({ ...settings, certificates: plainFiles(certificates) });
process.stdout.write(`${JSON.stringify(await backend.start())}\n`);
const alive = setInterval(() => undefined, 60_000);
process.once('SIGTERM', () => void backend.close().then(() => clearInterval(alive)));
