import { z } from 'zod';
import { portNumber } from '../../base/env-values.ts';
import { PROXIES, RUNTIMES } from '../../gitops/cli/up/drivers.ts';
import { PORTS } from '../../gitops/cli/up/ports.ts';
import { emulatorSettings } from '../../sites/local/cloudflare/settings.ts';

const port = (name: keyof typeof PORTS, of: string) =>
  portNumber.default(PORTS[name].fallback).describe(`The port of ${of} on loopback; 0 picks a free one.`);

/** What a person may set of `npm start` itself, for the reference of settings. It passes other settings to its parts. */
export const instanceSettings = z.object({
  TAGYARD_HOME: z
    .string()
    .default('.tagyard')
    .describe('The folder of all data: database, sites repo, certificates, edge stores, run.json.'),
  MANAGEMENT_PORT: port('management', 'management'),
  PROVISIONER_PORT: port('provisioner', 'the provisioner'),
  EDGE_PORT: port('edge', 'the edge'),
  PROXY_PORT: port('proxy', 'the proxy'),
  SHOP_PORT: port('shop', 'the demo shop'),
  TAGYARD_PROXY: z.enum(PROXIES).optional().describe('The proxy. Unset: nginx if it is installed.'),
  TAGYARD_CONTAINERS: z
    .enum(RUNTIMES)
    .optional()
    .describe('The container runtime. Unset: Docker if it is installed.'),
  ...emulatorSettings.shape,
});

/** The settings of `tagyard`, likewise. */
export const commandSettings = z.object({
  TAGYARD_TIMEOUT: z.coerce
    .number()
    .positive()
    .max(86_400)
    .optional()
    .describe(
      'How many seconds `tagyard` waits for a daemon’s answer. Unset: 120 for plans and commits, 10 for everything else.',
    ),
  BACKUP_RECIPIENT: z
    .string()
    .optional()
    .describe('The age recipient (`age1…`) that `tagyard backup` encrypts to (docs/backup.md).'),
  MANAGEMENT_URL: z
    .url()
    .optional()
    .describe('Management’s URL, for `tagyard client add`, `import`, `mcp`, `snippet` and `doctor`.'),
  TAGYARD_TOKEN: z
    .string()
    .optional()
    .describe(
      'A token for these commands, except `doctor`: `client add` needs a JWT of a subject in SUPER_ADMINS, `snippet` one of an owner, admin or editor of the site’s client.',
    ),
});
