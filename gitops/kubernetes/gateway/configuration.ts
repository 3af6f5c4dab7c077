import { contentHash } from '../../../base/ownership.ts';
import type { VhostOptions } from '../../../sites/manifest/schema.ts';
import type { ProxySpec } from '../../appliers/proxy/desired.ts';
import { fileNameOf } from '../../appliers/proxy/file-name.ts';
import { chooseCertificate } from '../delivery/certificate-choice.ts';
import type { InstanceDocument, Served, SiteDocument } from '../delivery/documents.ts';
import type { Delivered } from '../delivery/secrets.ts';
import { type CertificatePair, readPair } from './certificates.ts';
import type { NameTarget } from './names.ts';

/** What was delivered, by the name of its Secret, the oldest Secret first. */
export type DeliveredSecrets = ReadonlyMap<string, Delivered>;

/** One file of nginx's configuration. */
export type ServerFile =
  /** One server for all names that lead to pods and have this certificate and these options. */
  | {
      readonly kind: 'platform';
      /** The name of the certificate's Secret. */
      readonly secret: string;
      readonly names: readonly string[];
      readonly options?: VhostOptions | undefined;
      readonly pair: CertificatePair;
    }
  /** A server for one name of a site. `pair` is `null` while there is no certificate: then the name has no TLS. */
  | {
      readonly kind: 'own';
      readonly secret: string;
      readonly spec: ProxySpec;
      readonly pair: CertificatePair | null;
    };

/** What the gateway must serve. */
export interface Configuration {
  /** `null`: not delivered yet, so nothing can be served. */
  readonly instance: InstanceDocument | null;
  readonly targets: ReadonlyMap<string, NameTarget>;
  /** Deployments that run on demand, by service (`<namespace>/<name>`). */
  readonly onDemand: ReadonlyMap<string, string>;
  /** By file name. */
  readonly files: ReadonlyMap<string, ServerFile>;
  /** The pairs that files use. */
  readonly pairs: readonly CertificatePair[];
  /** By name of the Secret: which part of it can't be served, and why. */
  readonly faults: ReadonlyMap<string, string>;
}

/**
 * Computes what is served from what was delivered, without effects. If two sites claim a name, the first one gets it.
 */
export function configurationOf(deliveries: DeliveredSecrets): Configuration {
  const faults = new Map<string, string>();
  /** The pairs, each with the name of its Secret. */
  const certificates = new Map<CertificatePair, string>();
  const sites: [string, SiteDocument][] = [];
  let instance: InstanceDocument | null = null;
  for (const [secret, delivered] of deliveries) {
    if (delivered.kind === 'site') sites.push([secret, delivered.document]);
    else if (delivered.kind === 'instance') instance ??= delivered.document;
    else {
      try {
        certificates.set(readPair(delivered), secret);
      } catch (error) {
        faults.set(secret, error instanceof Error ? error.message : String(error));
      }
    }
  }

  const pairs = [...certificates.keys()];
  const targets = new Map<string, NameTarget>();
  const platform = new Map<string, VhostOptions | undefined>();
  const onDemand = new Map<string, string>();
  const files = new Map<string, ServerFile>();
  const owners = new Map<string, string>();
  for (const [secret, { site, names }] of sites) {
    for (const served of names) {
      const { host } = served;
      const owner = owners.get(host);
      if (owner !== undefined) {
        faults.set(secret, `conflicting server name "${host}": the Secret ${owner} has it`);
        continue;
      }
      owners.set(host, secret);
      if (served.kind === 'origin' || served.kind === 'preview') {
        const { namespace, service, port, kind: role } = served;
        targets.set(host, { namespace, service, port, role });
        platform.set(host, served.options);
        if (served.kind === 'preview' && served.onDemand !== undefined) {
          onDemand.set(`${namespace}/${service}`, served.onDemand);
        }
      } else {
        const pair = chooseCertificate(pairs, host) ?? null;
        const key = served.kind === 'policy' ? `${site}/policy` : `${site}/${host}`;
        const spec = specOf(site, served, instance?.challengeKey !== undefined);
        if (spec === null) continue;
        files.set(fileNameOf(key, '.conf'), { kind: 'own', secret, spec, pair });
      }
    }
  }
  for (const [name, file] of platformFiles(certificates, platform)) files.set(name, file);
  const used = new Set([...files.values()].flatMap(({ pair }) => pair ?? []));
  return { instance, targets, onDemand, files, pairs: [...used], faults };
}

/** What the proxy's renderer needs for one name; `null`: it can't be served yet. */
function specOf(
  site: string,
  served: Extract<Served, { kind: 'custom' | 'policy' }>,
  acme: boolean,
): ProxySpec | null {
  const { kind, host } = served;
  if (kind === 'policy') {
    const { token, script } = served;
    if (token === undefined) return null;
    return { site, vhosts: [{ kind, host, tls: 'inside', token, script }] };
  }
  const { edgeHost, options } = served;
  return { site, vhosts: [{ kind, host, tls: acme ? 'acme' : undefined, edgeHost, options }] };
}

/**
 * One file for each certificate that names need, and one for the names that also have the same options. The file of a
 * wildcard serves `*.domain`, whether or not there are sites under the domain, so a new site there changes no file.
 */
function platformFiles(
  certificates: ReadonlyMap<CertificatePair, string>,
  hosts: ReadonlyMap<string, VhostOptions | undefined>,
): [string, ServerFile][] {
  const pairs = [...certificates.keys()];
  const wildcards = new Set(pairs.flatMap(({ names }) => names.filter((name) => name.startsWith('*.'))));
  const served = [...[...wildcards].map((name) => [name, undefined] as const), ...hosts];
  const placed = served.flatMap(([name, options]) => {
    const pair = chooseCertificate(pairs, name);
    const isOwn = options !== undefined || pair?.names.includes(name);
    return pair !== undefined && isOwn ? [{ name, options, pair }] : [];
  });
  const groups = Map.groupBy(placed, ({ pair, options }) => contentHash([pair.id, options]));
  return [...groups.values()].flatMap((group): [string, ServerFile][] =>
    group.slice(0, 1).map(({ options, pair }) => {
      const names = group.map(({ name }) => name).sort();
      const [first = ''] = names;
      const secret = certificates.get(pair) ?? '';
      // No file of a site begins with an underscore.
      const file = fileNameOf(`_${first.replace('*', '')}`, '.conf');
      return [file, { kind: 'platform', secret, names, options, pair }];
    }),
  );
}
