import { z } from 'zod';
import { optionalText, portNumber, textList } from '../base/env-values.ts';
import { removedSettings } from '../base/removed-settings.ts';
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

/** The settings of the daemon itself and those that several appliers use; each applier adds its own. */
const sharedSettings = z.object({
  TAGYARD_INSTANCE: z
    .string()
    .regex(/^[a-z0-9-]{1,12}$/)
    .default('tagyard'),
  HOST_NAME: z.string().default('tag-1'),
  HOST_TAKEOVER_TERM: optionalText.pipe(z.coerce.number<string | undefined>().int().positive().optional()),
  SITES_REPO: z.string(),
  SITES_REPO_GIT_CONFIG: optionalText,
  SITES_BRANCH: z.string().default('main'),
  SITES_POLL_SECONDS: z.coerce.number().positive().default(30),
  STATE_DIR: z.string(),
  INFRA_SECRET: optionalText,
  INFRA_SECRET_PREVIOUS: optionalText,
  HOP_SECRET: hopSecret,
  PROVISIONER_ADDRESS: z.string().default('127.0.0.1'),
  PROVISIONER_PORT: portNumber.default(8081),
  AGE_IDENTITY_FILE: z.string(),
  DRAIN_SECONDS: z.coerce.number().min(0).default(300),
  RECONCILE_INTERVAL_SECONDS: z.coerce.number().positive().default(300),
  RECONCILE_POLICY: z.enum(POLICIES).default('sync'),
  CLOUDFLARE_API_URL: z.url().default('https://api.cloudflare.com/client/v4'),
  CLOUDFLARE_API_TOKEN: z.string(),
  CLOUDFLARE_ACCOUNT_ID: z.string(),
  CLOUDFLARE_ZONE_ID: z.string(),
  CLOUDFLARE_RATE: z.coerce.number().positive().default(3.5),
  EDGE_DOMAIN: z.string(),
  /** Unset: EDGE_DOMAIN. */
  ORIGIN_DOMAIN: optionalText,
  EDGE_PUBLIC_URL: optionalText.pipe(edgePublicUrl),
  /** `<address>` or `<address>:<port>`; none: the system's. */
  DNS_RESOLVERS: textList.default([]),
  LOG_LEVEL: z.string().default('info'),
});

/** Where certificates come from. */
const certificateSettings = z.object({
  TLS_DIR: optionalText,
  ACME_DIRECTORY_URL: optionalText.pipe(z.url({ protocol: /^https$/ }).optional()),
  ACME_EMAIL: optionalText.pipe(z.email().optional()),
  ACME_CA_FILE: optionalText,
  ACME_ORDERS_PER_HOUR: z.coerce.number().positive().default(60),
  /** Addresses that a served name may resolve to, besides the host's own. */
  ACME_ADDRESSES: textList.default([]).pipe(z.array(z.union([z.ipv4(), z.ipv6()]))),
});

/** What only a machine has: an address of its own, an authority of its own, the output of its containers. */
const machineSettings = z.object({
  ...certificateSettings.shape,
  HOST_KIND: z.literal('machine').default('machine'),
  HOST_ADDRESS: z.ipv4(),
  LOCAL_CA_DIR: optionalText,
  CONTAINER_LOGS: z.enum(['all', 'json', 'off']).default('all'),
  KEEP_CONTAINER_LOGS_DAYS: z.coerce.number().int().min(1).max(365).default(7),
  CONTAINER_LOGS_MB: z.coerce.number().int().min(1).default(32),
  CONTAINER_LOGS_LINES_PER_SECOND: z.coerce.number().int().min(1).default(50),
});

/** Values of labels, by which objects are found. */
const labelValue = z
  .string()
  .regex(
    /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/,
    'must begin and end with a letter or digit, and have at most 63 of A-Z, a-z, 0-9, ., _ and -: it is the value of a label in the cluster',
  );

/** What only a cluster has, and what it demands of settings that every host has. */
const clusterSettings = z.object({
  ...certificateSettings.shape,
  HOST_KIND: z.literal('kubernetes'),
  TAGYARD_INSTANCE: sharedSettings.shape.TAGYARD_INSTANCE.pipe(labelValue),
  HOST_NAME: sharedSettings.shape.HOST_NAME.pipe(labelValue),
  KUBERNETES_GATEWAY_ADDRESS: optionalText.pipe(
    z.union([z.ipv4(), z.ipv6(), z.string().regex(/^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/)]).optional(),
  ),
  /** `<namespace>/<name>`. */
  KUBERNETES_LEASE: optionalText.pipe(
    z
      .string()
      .regex(/^[a-z0-9-]{1,63}\/[a-z0-9.-]{1,253}$/, 'must be <namespace>/<name> of a Lease')
      .optional(),
  ),
  KUBERNETES_LEASE_SECONDS: z.coerce.number().int().min(3).max(600).default(15),
  KUBERNETES_POD_ADDRESS: optionalText.pipe(z.union([z.ipv4(), z.ipv6()]).optional()),
  KUBERNETES_HTTP_PORT: portNumber.default(80),
  KUBERNETES_TLS_PORT: portNumber.default(443),
  HOP_SECRET_PREVIOUS: optionalText.pipe(hopSecret.optional()),
  EDGE_UPSTREAM: optionalText.pipe(z.url().optional()),
  TRUSTED_PROXIES: textList.pipe(z.array(cidrRange)).default([]),
  RECYCLE_DAYS: z.coerce.number().min(0).max(11).default(10),
});

const hostKind = z.enum(['machine', 'kubernetes']);

/** `dns=warn,kv=ignore`, with these targets. */
function driftModes(targets: readonly string[]) {
  return textList.transform((pairs, context): Readonly<Record<string, DriftMode>> => {
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
}

type Read<Own extends z.ZodObject, Appliers> = z.output<typeof sharedSettings> &
  z.output<Own> &
  Appliers & { readonly DRIFT_MODES: Readonly<Record<string, DriftMode>> };

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
 * settings of `registrations`, read in place of the appliers'. Throws an `Error` whose message is one line with every
 * wrong variable and what it must be.
 */
export function readEnv<Extra = unknown>(
  source: NodeJS.ProcessEnv,
  registrations?: readonly (Traits & { readonly settings: z.ZodObject })[],
): Env & Extra {
  const kind = hostKind.safeParse(source.HOST_KIND ?? 'machine');
  if (!kind.success) throw new Error(`HOST_KIND must be ${Object.keys(KINDS).join(' or ')}`);
  const { own, appliers } = KINDS[kind.data];
  const used = registrations ?? appliers;
  const shape = Object.assign(
    {},
    sharedSettings.shape,
    own.shape,
    ...used.map(({ settings }) => settings.shape),
  );
  const modes = driftModes(used.map(({ target }) => target)).default({});
  const result = z.object({ ...shape, DRIFT_MODES: modes }).safeParse(source);
  const issues = result.error?.issues ?? [];
  const faults = [
    ...removedSettings(source),
    ...issues.map(({ path, message }) => `${path.join('.')}: ${message}`),
  ];
  if (faults.length > 0) throw new Error(`the environment is wrong: ${faults.join('; ')}`);
  return result.data as Env & Extra; // composed at run time from the very schemas of these types
}
