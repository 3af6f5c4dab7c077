import { parse, stringify } from 'yaml';
import { formatManifest } from '../../sites/manifest/load.ts';
import type { ManifestInput } from '../../sites/manifest/schema.ts';
import { hostileManifests } from '../support/hostile-manifests.ts';
import { type Content, type ManifestChange, SITES } from './steps.ts';

const ZONE = 'tagyard.localhost';
/** Large enough that most hostile texts exceed a limit of manifests, and cheap enough for many steps. */
const HOSTILE_BYTES = 20_000;

type Template = Pick<ManifestInput, 'host' | 'image' | 'containerConfig'>;

/** A site's first manifest: a client, names, domains and ports of its own. */
export function seedManifest(site: string, template: Template): ManifestInput {
  const number = (SITES as readonly string[]).indexOf(site);
  const digits = String(number).padStart(4, '0');
  return {
    ...template,
    version: 1,
    site,
    client: `7c9e6679-7425-40de-944b-e07fc1f9${digits}`,
    container: `3f0a6679-7425-40de-944b-e07fc1f9${digits}`,
    name: site,
    hostnames: {
      edge: `${site}.${ZONE}`,
      origin: `${site}-origin.${ZONE}`,
      preview: `${site}-preview.${ZONE}`,
    },
    ports: { processing: 24_000 + 2 * number, preview: 24_001 + 2 * number },
    loaderToken: `lt_fuzz0loader0token${digits}`,
    domains: [
      { domain: `${site}-fuzz.example`, webTagId: 'GTM-FUZZ123', token: `ct_fuzz0container0${digits}` },
    ],
    customDomains: [`metrics.${site}-fuzz.example`],
    resources: { preview: { onDemand: true } },
  };
}

/** Every hostname at the edge that a text of the generator can give to a site. */
export const hostnamesOf = (site: string): string[] => [
  `${site}.${ZONE}`,
  `${site}-new.${ZONE}`,
  `metrics.${site}-fuzz.example`,
];

const CHANGES: Readonly<
  Record<
    Exclude<ManifestChange, 'UTF-16' | 'byte order mark' | 'no end'>,
    (own: ManifestInput, other: ManifestInput) => object
  >
> = {
  same: () => ({}),
  renamed: () => ({ name: 'Another name' }),
  absent: () => ({ state: 'absent' }),
  suspended: () => ({ suspend: true }),
  'switched off': () => ({ serving: false }),
  protected: () => ({ protect: true }),
  'other host': () => ({ host: 'elsewhere' }),
  'other version': () => ({ version: 2 }),
  'other client': (_own, other) => ({ client: other.client }),
  'unknown key': () => ({ anything: 1 }),
  'wrong site': (_own, other) => ({ site: other.site }),
  'steals hostnames': (_own, other) => ({ hostnames: other.hostnames }),
  'steals ports': (_own, other) => ({ ports: other.ports }),
  'steals tokens': (_own, other) => ({ loaderToken: other.loaderToken }),
  'steals container': (_own, other) => ({ container: other.container }),
  'steals domains': (_own, other) => ({ domains: other.domains }),
  'steals custom domain': (own, other) => ({
    customDomains: [...(own.customDomains ?? []), ...(other.customDomains ?? [])],
    domains: [
      ...own.domains,
      {
        domain: `sub.${other.domains[0]?.domain}`,
        webTagId: 'GTM-FUZZ124',
        token: `${own.domains[0]?.token}b`,
      },
    ],
  }),
  'new token': (own) => ({ loaderToken: `${own.loaderToken}new` }),
  'new hostname': (own) => ({ hostnames: { ...own.hostnames, edge: `${own.site}-new.${ZONE}` } }),
  'steals secret': (_own, other) => ({ containerConfig: other.containerConfig }),
  'damaged secret': (own) => ({
    containerConfig: own.containerConfig.replace(/\n.{20}/, '\nAAAAAAAAAAAAAAAAAAAA'),
  }),
};

/** The bytes of a file. */
export function bytesOf(content: Content, manifests: ReadonlyMap<string, ManifestInput>): Buffer {
  if (content.of === 'bytes') return Buffer.from(content.latin1.repeat(content.times), 'latin1');
  if (content.of === 'hostile') {
    const texts = hostileManifests(HOSTILE_BYTES);
    return Buffer.from(texts[content.number % texts.length]?.text ?? '');
  }
  const [own, other] = [manifests.get(content.site), manifests.get(content.other)];
  if (own === undefined || other === undefined)
    throw new Error(`${content.site} is not a site of the generator`);
  const plain = formatManifest(own);
  switch (content.change) {
    case 'UTF-16':
      return Buffer.from(`\ufeff${plain}`, 'utf16le');
    case 'byte order mark':
      return Buffer.from(`\ufeff${plain}`);
    case 'no end':
      return Buffer.from(plain.slice(0, plain.length / 2));
    default:
      // Not written by `formatManifest`, because most of these are not valid manifests.
      return Buffer.from(stringify({ ...own, ...CHANGES[content.change](own, other) }));
  }
}

/** True where a text says that its site is to be removed here: by a tombstone, or by naming another host. */
export function saysRemoval(text: string, host: string): boolean {
  try {
    const value: unknown = parse(text, { logLevel: 'silent' });
    if (typeof value !== 'object' || value === null) return false;
    return ('state' in value && value.state === 'absent') || ('host' in value && value.host !== host);
  } catch {
    return false;
  }
}

/** True if a path names the site in any form: in a folder, in other case, with another ending. */
export function isNamedBy(path: string, site: string): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase();
  return [`${site}.yaml`, `${site}.yml`].some(
    (own) => name.startsWith(own) && !/^[a-z0-9]/.test(name.slice(own.length)),
  );
}
