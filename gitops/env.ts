import { z } from 'zod';
import { optionalText, personSetting, portNumber, textList } from '../base/env-values.ts';
import { parseSettings } from '../base/settings.ts';
import { edgePublicUrl } from '../sites/manifest/description.ts';
import type { Traits } from './appliers/contract.ts';
import {
  CLUSTER_APPLIERS,
  type ClusterApplierSettings,
  MACHINE_APPLIERS,
  type MachineApplierSettings,
} from './appliers/index.ts';
import { cidrRange } from './appliers/proxy/policy.ts';
import { DRIFT_MODES, type DriftMode } from './pass/drift.ts';
import { POLICIES } from './pass/guards.ts';

const hopSecret = z.string().regex(/^[A-Za-z0-9_-]{16,256}$/, 'must be 16 to 256 of A-Z, a-z, 0-9, _ and -');

const hostKind = z
  .enum(['machine', 'kubernetes'])
  .default('machine')
  .describe(
    'Where the sites run: `machine` (Docker and nginx of this machine), or `kubernetes` (a cluster, docs/kubernetes.md).',
  );

/** The settings of the daemon itself and those that several appliers use; each applier adds its own. */
export const sharedSettings = z.object({
  TAGYARD_INSTANCE: z
    .string()
    .regex(/^[a-z0-9-]{1,12}$/)
    .default('tagyard')
    .describe("The installation's name in ownership marks. Objects with another name are never touched."),
  HOST_NAME: z
    .string()
    .default('tag-1')
    .describe(
      "This host's name. Only sites whose manifest has it as `host` are applied here. New sites get the host that management's setting names.",
    ),
  HOST_TAKEOVER_TERM: optionalText
    .pipe(z.coerce.number<string | undefined>().int().positive().optional())
    .describe(
      "Needed once, when this machine replaces another one that has the same HOST_NAME. Stop the provisioner on the other machine first. Then set the term that this provisioner's error message names.",
    ),
  SITES_REPO: z.string().describe('The sites repo: a git URL, or the path of a bare repo.'),
  SITES_REPO_GIT_CONFIG: optionalText.describe(
    "A file of git's settings for the sites repo, for example `http.proxy` or `core.sshCommand`. Git reads none of the machine's or the user's. Unset: only the repo's own.",
  ),
  SITES_BRANCH: z.string().default('main').describe('The branch of the sites repo.'),
  SITES_POLL_SECONDS: z.coerce
    .number()
    .positive()
    .default(30)
    .describe('How often a remote sites repo is fetched.'),
  SITES_REPO_PASSWORD_FILE: optionalText.describe(
    'A file whose first line is the password or token for an HTTPS `SITES_REPO`, whose URL may name the user (default: `git`). It is read whenever git needs it, so another program can replace it (docs/gitops.md).',
  ),
  SITES_SIGNING_KEY_FILE: optionalText.describe(
    'The file of the SSH key that signs every commit, without a passphrase (docs/gitops.md). Needs `ssh-keygen`. Unset: commits are not signed.',
  ),
  SITES_COMMITTER: personSetting
    .optional()
    .describe(
      'The committer of every commit, as `Name <address>`; the author is who asked for the change. A forge shows a signature as verified only if the address belongs to the account of the key. Unset: `Tagyard <tagyard@localhost>`.',
    ),
  SITES_WEBHOOK_SECRET_FILE: optionalText.describe(
    'A file with the secret of the webhook by which GitHub, GitLab or Gitea reports pushes to `POST /webhooks/push`, which fetches at once (docs/gitops.md). It is read for each report; several secrets, one a line, are all accepted. Unset: there is no such route.',
  ),
  STATE_DIR: z
    .string()
    .describe(
      "A folder of the daemon's own. The provisioner's has the cache of what was applied, the lock, the id by which it holds HOST_NAME, and the CAs of the previews. If that folder is lost, the next pass is slower and deletes nothing. It also replaces the containers, because they trust the lost CAs in `inside/`: keep a backup of `inside/`.",
    ),
  INFRA_SECRET: optionalText.describe(
    "The secret of the provisioner's `x-secret` header. Unset or empty: the provisioner refuses every request.",
  ),
  INFRA_SECRET_PREVIOUS: optionalText.describe(
    'The old INFRA_SECRET during a rotation; it is accepted as well.',
  ),
  INFRA_READ_TOKEN: optionalText.describe(
    'Beside INFRA_SECRET: a token that may only read plans, the status and metrics, for CI and Prometheus.',
  ),
  HOP_SECRET: hopSecret.describe(
    "The common secret of proxy and edge: 16 to 256 characters of A-Z, a-z, 0-9, _ and -. The visitor's address that a request states is trusted only if the request has this secret in `x-tagyard-hop-secret`. With it, the verification worker's visits are marked as probes; otherwise they count as traffic.",
  ),
  HOP_SECRET_PREVIOUS: optionalText
    .pipe(hopSecret.optional())
    .describe(
      'Proxies, gateways and the edge accept this secret besides HOP_SECRET, while one replaces the other, and never send it. The order of steps is in docs/deploy-edge.md.',
    ),
  PROVISIONER_ADDRESS: z
    .string()
    .default('127.0.0.1')
    .describe('The address that the provisioner listens on.'),
  PROVISIONER_PORT: portNumber.default(8081),
  AGE_IDENTITY_FILE: z
    .string()
    .describe(
      "The key file that decrypts the manifests' secrets, in the format of age-keygen. Its mode is 0600. It may contain several identities.",
    ),
  DRAIN_SECONDS: z.coerce
    .number()
    .min(0)
    .default(300)
    .describe(
      "How many seconds a removed site's containers keep serving after its DNS records are deleted. The default is the longest TTL; `npm start`: 0.",
    ),
  RECONCILE_INTERVAL_SECONDS: z.coerce
    .number()
    .positive()
    .default(300)
    .describe('How often everything is compared with the manifests without another trigger.'),
  RECONCILE_POLICY: z
    .enum(POLICIES)
    .default('sync')
    .describe(
      '`sync`: create, update and delete by the manifests. `upsert_only`: never delete. While a file named `freeze` is in STATE_DIR, nothing is changed; its text is shown as the reason.',
    ),
  FREEZE_FILE: optionalText.describe(
    'A second file that stops all changes while it exists, outside of STATE_DIR: for example of a ConfigMap.',
  ),
  CLOUDFLARE_API_URL: z
    .url()
    .default('https://api.cloudflare.com/client/v4')
    .describe('The base URL of the API; another one for an emulator or a proxy.'),
  CLOUDFLARE_API_TOKEN: z
    .string()
    .describe(
      'A token that may edit DNS, Workers routes and KV of the zone, read the zone (for its quotas and edge names), and read Workers scripts (for `tagyard doctor`).',
    ),
  CLOUDFLARE_ACCOUNT_ID: z.string().describe('The account of the zone and of the worker.'),
  CLOUDFLARE_ZONE_ID: z.string().describe('The zone of EDGE_DOMAIN.'),
  CLOUDFLARE_RATE: z.coerce
    .number()
    .positive()
    .default(3.5)
    .describe("API calls per second of this host. The account's limit for all hosts is 1,200 in 5 minutes."),
  EDGE_DOMAIN: z.string().describe("The zone of new sites' edge hostnames: `<site>.<EDGE_DOMAIN>`."),
  ORIGIN_DOMAIN: optionalText.describe(
    "The zone of new sites' other names: `<site>-origin.<ORIGIN_DOMAIN>`, `<site>-preview.<ORIGIN_DOMAIN>`. Unset: EDGE_DOMAIN.",
  ),
  EDGE_PUBLIC_URL: optionalText
    .pipe(edgePublicUrl)
    .describe('How browsers reach an edge hostname. Snippets and verifications use it.'),
  DNS_RESOLVERS: textList
    .default([])
    .describe(
      "The resolvers for verifications and certificates: `<address>` or `<address>:<port>`. Unset: the system's. Name public ones if the system's resolvers answer otherwise than the internet's.",
    ),
  LOG_LEVEL: z.string().default('info').describe('fatal, error, warn, info, debug or trace.'),
  TLS_DIR: optionalText.describe(
    'For `tls: files`: the folder with the certificates of origin, preview and custom domains (docs/tls.md).',
  ),
  ACME_DIRECTORY_URL: optionalText
    .pipe(z.url({ protocol: /^https$/ }).optional())
    .describe(
      "For `tls: acme`: the authority's directory, for example `https://acme-v02.api.letsencrypt.org/directory`; by setting it, you agree to the authority's terms of service.",
    ),
  ACME_EMAIL: optionalText.pipe(z.email().optional()).describe('Your contact address for the authority.'),
  ACME_EAB_KEY_ID: optionalText.describe(
    'For an authority that demands external account binding: the id of the key that it gave you.',
  ),
  ACME_EAB_HMAC_KEY: optionalText.describe('The key of ACME_EAB_KEY_ID, in Base64url.'),
  ACME_EAB_HMAC_KEY_FILE: optionalText.describe('A file with this key (mode 0600), in place of the key.'),
  ACME_CA_FILE: optionalText.describe('A file with the CA of an authority of your own (PEM).'),
  ACME_ORDERS_PER_HOUR: z.coerce
    .number()
    .positive()
    .default(60)
    .describe(
      "Certificate orders of this host per hour, in bursts of at most a tenth of that number. Let's Encrypt allows 300 orders per account in three hours, and 50 new names per registrable domain and week.",
    ),
  ACME_ADDRESSES: textList
    .default([])
    .pipe(z.array(z.union([z.ipv4(), z.ipv6()])))
    .describe(
      'Further addresses of this host (IPv6, a load balancer). Custom domains may point to them as well.',
    ),
  HOST_KIND: hostKind,
  DRIFT_MODES: driftModes([]),
});

/** What only a machine has: an address of its own, an authority of its own, the output of its containers. */
export const machineSettings = z.object({
  HOST_KIND: z.literal('machine').default('machine'),
  HOST_ADDRESS: z.ipv4().describe('The address in the DNS records of origin and preview hostnames.'),
  LOCAL_CA_DIR: optionalText.describe(
    'For `tls: files` in place of TLS_DIR: the folder of a local CA that issues the certificates.',
  ),
  CONTAINER_LOGS: z
    .enum(['all', 'json', 'off'])
    .default('all')
    .describe(
      'Which lines that containers print are kept on this host, without bodies and what may be personal (docs/logs.md). `all`; `json`: only lines in the common JSON shape of templates, and refusals of the policy script; `off`: none.',
    ),
  KEEP_CONTAINER_LOGS_DAYS: z.coerce
    .number()
    .int()
    .min(1)
    .max(365)
    .default(7)
    .describe('How many days these lines are kept.'),
  CONTAINER_LOGS_MB: z.coerce
    .number()
    .int()
    .min(1)
    .default(32)
    .describe('How many megabytes of these lines are kept for each site.'),
});

/** Values of labels, by which objects are found. */
const labelValue = z
  .string()
  .regex(
    /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/,
    'must begin and end with a letter or digit, and have at most 63 of A-Z, a-z, 0-9, ., _ and -: it is the value of a label in the cluster',
  );

/** What only a cluster has, and what it demands of settings that every host has. */
export const clusterSettings = z.object({
  HOST_KIND: z.literal('kubernetes'),
  TAGYARD_INSTANCE: sharedSettings.shape.TAGYARD_INSTANCE.pipe(labelValue),
  HOST_NAME: sharedSettings.shape.HOST_NAME.pipe(labelValue),
  KUBERNETES_GATEWAY_ADDRESS: optionalText
    .pipe(z.union([z.ipv4(), z.ipv6(), z.string().regex(/^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/)]).optional())
    .describe(
      'The address or name that leads to the gateway, if the Service itself has only a private address.',
    ),
  KUBERNETES_HTTP_PORT: portNumber
    .default(80)
    .describe(
      'The port of KUBERNETES_GATEWAY_ADDRESS that answers the challenges of a certificate authority.',
    ),
  KUBERNETES_TLS_PORT: portNumber
    .default(443)
    .describe(
      "The port of KUBERNETES_GATEWAY_ADDRESS that answers TLS for the sites' origin and preview names.",
    ),
  EDGE_UPSTREAM: optionalText.pipe(z.url().optional()),
  TRUSTED_PROXIES: textList.pipe(z.array(cidrRange)).default([]),
  RECYCLE_DAYS: z.coerce.number().min(0).max(11).default(10),
});

/** `dns=warn,kv=ignore`, with these targets. */
function driftModes(targets: readonly string[]) {
  const modes = textList.transform((pairs, context): Readonly<Record<string, DriftMode>> => {
    const modes = pairs.map((pair): [string, DriftMode] => {
      const [target = '', mode, ...rest] = pair.split('=');
      if (!targets.includes(target)) {
        context.addIssue(`${target} is not one of the targets ${targets.join(', ')}`);
      }
      const known = DRIFT_MODES.find((one) => one === mode);
      if (known === undefined || rest.length > 0) {
        context.addIssue(`${pair} must be <target>=<mode>, with one of the modes ${DRIFT_MODES.join(', ')}`);
      }
      return [target, known ?? 'enforce'];
    });
    return Object.fromEntries(modes);
  });
  return modes
    .default({})
    .describe(
      'The reaction to drift, by target (network, policy, containers, proxy, kv, route, dns; in a cluster objects, workloads and gateway in place of network, containers and proxy): `enforce` repairs it, `warn` reports it, `ignore` does nothing. For example `dns=warn,kv=ignore`. Unset: `enforce` for all.',
    );
}

type Read<Own extends z.ZodObject, Appliers> = z.output<typeof sharedSettings> & z.output<Own> & Appliers;

/** The environment of a provisioner on a machine. */
export type MachineEnv = Read<typeof machineSettings, MachineApplierSettings>;
/** The environment of a provisioner for a Kubernetes cluster. */
export type ClusterEnv = Read<typeof clusterSettings, ClusterApplierSettings>;
export type Env = MachineEnv | ClusterEnv;

const KINDS = {
  machine: { own: machineSettings, appliers: MACHINE_APPLIERS },
  kubernetes: { own: clusterSettings, appliers: CLUSTER_APPLIERS },
} as const;

/**
 * Reads the settings of a host and of its appliers; HOST_KIND names the kind of the host. `Extra` is the type of the
 * settings of `registrations`, read in place of the appliers'. Throws as `parseSettings` does.
 */
export function readEnv<Extra = unknown>(
  source: NodeJS.ProcessEnv,
  registrations?: readonly (Traits & { readonly settings: z.ZodObject })[],
): Env & Extra {
  const kind = hostKind.safeParse(source.HOST_KIND);
  if (!kind.success) throw new Error(`HOST_KIND must be ${Object.keys(KINDS).join(' or ')}`);
  const { own, appliers } = KINDS[kind.data];
  const used = registrations ?? appliers;
  const shape = Object.assign(
    {},
    sharedSettings.shape,
    own.shape,
    ...used.map(({ settings }) => settings.shape),
  );
  const modes = driftModes(used.map(({ target }) => target));
  return parseSettings(z.object({ ...shape, DRIFT_MODES: modes }), source) as Env & Extra; // composed at run time from the very schemas of these types
}
