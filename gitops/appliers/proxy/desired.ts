import { z } from 'zod';
import { contentHash, hash16 } from '../../../base/ownership.ts';
import { tlsOf } from '../../../sites/manifest/certificate-check.ts';
import {
  type ContainerSettings,
  containerSpecs,
  type LoadedManifest,
  policyHostOf,
} from '../../../sites/manifest/containers.ts';
import {
  hostname,
  provenHosts,
  siteId,
  type VhostOptions,
  vhostOptions,
  vhostOptionsOf,
} from '../../../sites/manifest/schema.ts';
import type { Resource, Traits } from '../contract.ts';
import type { CertificateSource, ServedName } from './certificates.ts';

export const PROXY = { target: 'proxy' } as const satisfies Traits;

/** What the containers read when they start, so it is served before them. */
export const POLICY = { target: 'policy' } as const satisfies Traits;

const upstream = z.strictObject({ address: z.ipv4(), port: z.int().min(1).max(65535) });
/** IP addresses, never names: the proxy must not wait for DNS while it reads its configuration. */
const upstreams = z.array(upstream).min(1).max(16);

/**
 * Unset: the certificate comes from files. With `acme`, plain HTTP answers the authority's challenges; TLS starts as
 * soon as the certificate exists.
 */
const tls = z.enum(['acme', 'uploaded']).optional();
/** `inside`: the preview server's name in the site's network, with a certificate of this host's own authority. */
const previewTls = z.enum(['acme', 'uploaded', 'inside']).optional();
const label = z.string().regex(/^(?!-)[a-z0-9-]{1,63}(?<!-)$/);
/** One script of the instance and one of a client, of at most 32 KiB each, and what joins them. */
const policyText = z
  .string()
  .max(3 * 32 * 1024)
  .regex(/^[^\p{Cc}\p{Cs}]*(?:[\n\t][^\p{Cc}\p{Cs}]*)*$/u, 'must not contain control characters');
/** A request without it doesn't get the script, because other sites know the script's host name. */
const policyToken = z.string().regex(/^[0-9a-f]{32}$/);
/** See `CertificateSource.edition`; it only changes the hash of the spec. */
const certificate = z.string().optional();
const named = { host: hostname, tls, certificate, options: vhostOptions.optional() };

/** One name that the proxy serves, and its upstream. */
const vhostSchema = z.discriminatedUnion('kind', [
  /** TLS only, to the processing containers; trusts `x-forwarded-*` of requests with the hop secret. */
  z.strictObject({ kind: z.literal('origin'), ...named, upstreams }),
  /** TLS only, to the preview container: under its hostname, and under its name in the site's network. */
  z.strictObject({
    kind: z.literal('preview'),
    ...named,
    host: z.union([hostname, label]),
    tls: previewTls,
    upstreams,
  }),
  /** Plain HTTP and TLS, to the edge under the site's edge hostname. */
  z.strictObject({ kind: z.literal('custom'), ...named, edgeHost: hostname }),
  /** TLS only, under the script's name in the site's network: each path below `/<token>/` answers the site's policy script. */
  z.strictObject({
    kind: z.literal('policy'),
    host: z.union([hostname, label]),
    tls: z.literal('inside'),
    certificate,
    token: policyToken,
    script: policyText,
  }),
]);
export type Vhost = z.output<typeof vhostSchema>;

/** What a proxy does about each option of a vhost. */
export type PerOption<Result> = {
  readonly [Option in keyof VhostOptions]-?: (value: NonNullable<VhostOptions[Option]>) => Result;
};

/** What the proxy's table says about the options that are set. */
export function followOptions<Result>(table: PerOption<Result>, set: VhostOptions = {}): Result[] {
  const follow = table as Readonly<Record<string, (value: unknown) => Result>>; // the same keys
  return Object.entries(set).flatMap(([option, value]) => follow[option]?.(value) ?? []);
}

/** The name of a vhost, and where its certificate comes from. */
export function servedName({ host, tls }: Vhost): ServedName {
  return { host, tls: tls ?? 'files' };
}

/** The vhosts of one resource: the site's origin and preview, one of its custom domains, or its policy script. */
export const proxySpecSchema = z.strictObject({ site: siteId, vhosts: z.array(vhostSchema).min(1) });
export type ProxySpec = z.output<typeof proxySpecSchema>;

/**
 * Computes the resources with a site's vhosts, pure. The resource `<site>` has the vhosts of origin and preview; each
 * custom domain that is proven has a resource `<site>/<custom domain>`. So adding or removing one is a create or delete.
 */
export function proxyResources(
  manifest: LoadedManifest,
  settings: ContainerSettings,
  editionOf?: CertificateSource['edition'],
): Resource<ProxySpec>[] {
  const { site, hostnames, adopt } = manifest;
  const specs = containerSpecs(manifest, settings);
  const forPreview = vhostOptionsOf(manifest, 'preview');
  const of = (role: 'processing' | 'preview') =>
    specs.filter((spec) => spec.role === role).map(({ address, port }) => ({ address, port }));
  const servedBy = (host: string) => {
    const mode = tlsOf(manifest.tls, host);
    const ofVhost = mode === 'files' ? undefined : mode;
    const edition =
      mode === 'uploaded'
        ? hash16(`${manifest.tls.certificate} ${manifest.tlsKey?.fingerprint}`)
        : editionOf?.(host, mode);
    return { host, tls: ofVhost, certificate: edition, options: vhostOptionsOf(manifest) };
  };
  const resource = (key: string, summary: string, vhosts: Vhost[]): Resource<ProxySpec> => {
    const spec: ProxySpec = { site, vhosts };
    return { target: PROXY.target, site, key, hash: contentHash(spec), summary, adopt, spec };
  };
  const insideName = settings.previewNameOf?.(site);
  const inside: Vhost[] =
    insideName === undefined
      ? []
      : [{ kind: 'preview', host: insideName, tls: 'inside', upstreams: of('preview'), options: forPreview }];
  return [
    resource(site, `serve ${hostnames.origin} and ${hostnames.preview}`, [
      { kind: 'origin', ...servedBy(hostnames.origin), upstreams: of('processing') },
      { kind: 'preview', ...servedBy(hostnames.preview), upstreams: of('preview'), options: forPreview },
      ...inside,
    ]),
    ...provenHosts(manifest).map((host) =>
      resource(`${site}/${host}`, `serve ${host} for ${hostnames.edge}`, [
        { kind: 'custom', ...servedBy(host), edgeHost: hostnames.edge },
      ]),
    ),
  ];
}

const POLICY_KEY = /\/policy$/;

/** Whether a vhost of this key serves a policy script, and so belongs to the target `policy`, not to `proxy`. */
export function isPolicyKey(key: string): boolean {
  return POLICY_KEY.test(key);
}

/** The resource with the vhost of a site's policy script, pure; none without a script. */
export function policyResources(
  manifest: LoadedManifest,
  settings: ContainerSettings,
): Resource<ProxySpec>[] {
  const { site, adopt, policy } = manifest;
  const host = policyHostOf(manifest, settings);
  const token = settings.policyScripts?.tokenOf(manifest);
  if (host === null || token === undefined || policy === undefined) return [];
  const spec: ProxySpec = {
    site,
    vhosts: [{ kind: 'policy', host, tls: 'inside', token, script: policy.text }],
  };
  const key = `${site}/policy`;
  const summary = `serve the policy script ${policy.hash}`;
  return [{ target: POLICY.target, site, key, hash: contentHash(spec), summary, adopt, spec }];
}
