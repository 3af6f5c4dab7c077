import { z } from 'zod';
import { hostname, siteId, vhostOptions } from '../../../sites/manifest/schema.ts';

/**
 * What the provisioner delivers to the gateway of a cluster: a document for each site and one for the instance, each in
 * a Secret of its own. A gateway refuses a document of a version that it doesn't know, and keeps the one that it has.
 */
const VERSION = 1;

/** A name in Kubernetes (RFC 1123 label). */
const label = z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, 'must be a DNS label');
const port = z.int().min(1).max(65_535);

const options = vhostOptions.optional();
/** The pods that a name leads to: those of a Service, and the port on which their containers listen. */
const pods = { namespace: label, service: label, port, options };

const served = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('origin'), host: hostname, ...pods }),
  z.strictObject({
    kind: z.literal('preview'),
    host: z.union([hostname, label]),
    ...pods,
    /**
     * A Deployment of the same namespace that has no pod until the first request; unset: the preview server always
     * runs.
     */
    onDemand: label.optional(),
  }),
  /** Leads to the edge under the site's edge hostname. */
  z.strictObject({ kind: z.literal('custom'), host: hostname, edgeHost: hostname, options }),
  /**
   * Every request for a path under the token is answered with the script. Provisioners of earlier versions wrote no
   * token. Until a delivery with a token, the script is not served, but the site's other names are.
   */
  z.strictObject({
    kind: z.literal('policy'),
    host: z.union([hostname, label]),
    token: z
      .string()
      .regex(/^[0-9a-f]{32}$/)
      .optional(),
    script: z.string(),
  }),
]);
export type Served = z.output<typeof served>;

export const siteDocument = z.strictObject({
  version: z.literal(VERSION, 'is of a version that this gateway doesn’t know: update the gateway first'),
  site: siteId,
  names: z.array(served).max(200),
});
export type SiteDocument = z.output<typeof siteDocument>;

const secret = z.string().regex(/^[A-Za-z0-9_-]{16,256}$/, 'must be 16 to 256 of A-Z, a-z, 0-9, - and _');
const ranges = z.array(z.union([z.cidrv4(), z.cidrv6()]));

export const instanceDocument = z.strictObject({
  version: z.literal(VERSION, 'is of a version that this gateway doesn’t know: update the gateway first'),
  /** `previous` is accepted, too, while the secret is replaced; only `current` is sent. */
  hopSecret: z.strictObject({ current: secret, previous: secret.optional() }),
  /** Peers that are trusted to state the visitor's address: Cloudflare, and HTTP fronts of the operator's own. */
  trusted: z.strictObject({ cloudflare: ranges, own: ranges }),
  /** The edge, to which custom domains lead; `address` is an IP address, an IPv6 one in brackets. */
  edge: z.strictObject({ scheme: z.enum(['http', 'https']), address: z.string(), port }),
  /** Thumbprint of the ACME account's key (RFC 7638), by which each replica answers challenges; unset: none does. */
  challengeKey: z
    .string()
    .regex(/^[A-Za-z0-9_-]{43}$/)
    .optional(),
});
export type InstanceDocument = z.output<typeof instanceDocument>;
