import { z } from 'zod';
import { contentHash } from '../../../base/ownership.ts';
import type { KubernetesObject } from '../client/kinds.ts';

/** The value of the delivery label on the Leases by which gateways report. */
export const REPORT = 'report';

const startFailure = z.object({
  /** Differs for each failed attempt of the gateway. */
  number: z.number(),
  /** Why the preview server's Deployment couldn't be scaled to one pod; empty: it was, but no pod was ready in time. */
  reason: z.string(),
});
/** Why a preview server on demand didn't start for a request. */
export type StartFailure = z.infer<typeof startFailure>;

/** What a gateway serves, as it reports in the annotations of its Lease. */
interface GatewayReport {
  /** `deliveryDigest` of the Secrets that it serves. */
  readonly delivered: string;
  /** The version of its nginx's generation. */
  readonly generation: string;
  /** True if it takes requests. */
  readonly ready: boolean;
  /** By name of the Secret: why it isn't served as delivered. After the first ten Secrets, the reason is empty. */
  readonly refused: Readonly<Record<string, string>>;
  /** True if `refused` may lack some refused Secrets, because there were too many to name. */
  readonly isCut: boolean;
  /**
   * By service (`<namespace>/<name>`) that runs on demand: how long ago its last request was, in seconds. If there are
   * more than 500, only those with the latest requests: the others may be stopped sooner.
   */
  readonly unused: Readonly<Record<string, number>>;
  /** By service that runs on demand: why its last attempt to start has failed. At most a hundred. */
  readonly failed: Readonly<Record<string, StartFailure>>;
}

const PREFIX = 'tagyard/gateway-';
/**
 * A text has up to 500 characters, a Secret's name up to 253, and a service up to 127: together less than the 256 KiB that
 * annotations may have.
 */
const LONGEST_TEXT = 500;
const MOST_TEXTS = 10;
const MOST_NAMES = 500;
const MOST_USES = 500;
const MOST_FAILED = 100;

const annotations = z.object({
  [`${PREFIX}delivered`]: z.string(),
  [`${PREFIX}generation`]: z.string(),
  [`${PREFIX}ready`]: z.enum(['true', 'false']),
  [`${PREFIX}refused`]: z.string(),
  // A gateway of an earlier version has neither of these two. It named at most ten Secrets, and stated uses by its own
  // clock.
  [`${PREFIX}unnamed`]: z.string().optional(),
  [`${PREFIX}unused`]: z.string().optional(),
  [`${PREFIX}used`]: z.string().default('{}'),
  [`${PREFIX}failed`]: z.string().default('{}'),
});
const refusals = z.record(z.string(), z.string());
const failures = z.record(z.string(), startFailure);
const ages = z.record(z.string(), z.number().nonnegative());
/**
 * Times by an earlier gateway's own clock mean nothing here. It reported only recent uses, so each counts as a use now.
 */
const times = z.record(
  z.string(),
  z.number().transform(() => 0),
);

/** Names a set of Secrets with their contents. Gateway and provisioner each compute it from what they see. */
export function deliveryDigest(secrets: Iterable<Pick<KubernetesObject, 'metadata'>>): string {
  const versions = [...secrets].map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion ?? ''}`);
  return contentHash(versions.sort());
}

/** The annotations of a report, in which refusals, uses and failures are cut. */
export function formatReport({
  delivered,
  generation,
  ready,
  refused,
  unused,
  failed,
}: Omit<GatewayReport, 'isCut'>): Record<string, string> {
  const all = Object.entries(refused);
  const named = all
    .slice(0, MOST_NAMES)
    .map(([name, why], index) => [name, index < MOST_TEXTS ? why.slice(0, LONGEST_TEXT) : '']);
  const unstarted = Object.entries(failed)
    .slice(0, MOST_FAILED)
    .map(([service, { number, reason }], index) => {
      return [service, { number, reason: reason.slice(0, index < MOST_TEXTS ? LONGEST_TEXT : 50) }];
    });
  const uses = Object.entries(unused)
    .sort(([, one], [, other]) => one - other)
    .slice(0, MOST_USES);
  return {
    [`${PREFIX}delivered`]: delivered,
    [`${PREFIX}generation`]: generation,
    [`${PREFIX}ready`]: String(ready),
    [`${PREFIX}refused`]: JSON.stringify(Object.fromEntries(named)),
    [`${PREFIX}unnamed`]: String(all.length - named.length),
    [`${PREFIX}unused`]: JSON.stringify(Object.fromEntries(uses)),
    [`${PREFIX}failed`]: JSON.stringify(Object.fromEntries(unstarted)),
  };
}

/** Reads a gateway's Lease; `null` if it holds no report. */
export function readReport({ metadata }: KubernetesObject): GatewayReport | null {
  const read = annotations.safeParse(metadata.annotations ?? {});
  if (!read.success) return null;
  const found = read.data;
  let refused: unknown;
  let unused: z.output<typeof ages>;
  let failed: GatewayReport['failed'];
  try {
    failed = failures.catch({}).parse(JSON.parse(found[`${PREFIX}failed`] ?? '{}'));
    refused = JSON.parse(found[`${PREFIX}refused`] ?? '{}');
    const aged = found[`${PREFIX}unused`];
    unused =
      aged === undefined
        ? times.catch({}).parse(JSON.parse(found[`${PREFIX}used`] ?? '{}'))
        : ages.catch({}).parse(JSON.parse(aged));
  } catch {
    return null;
  }
  const named = refusals.catch({}).parse(refused);
  const unnamed = found[`${PREFIX}unnamed`];
  return {
    delivered: found[`${PREFIX}delivered`] ?? '',
    generation: found[`${PREFIX}generation`] ?? '',
    ready: found[`${PREFIX}ready`] === 'true',
    refused: named,
    isCut: unnamed === undefined ? Object.keys(named).length >= MOST_TEXTS : unnamed !== '0',
    unused,
    failed,
  };
}
