import { type Manifest, type ManifestInput, manifestSchema } from '../../sites/manifest/schema.ts';
import type { GivenClientKeys } from '../../sites/requests/container.ts';
import type { Settings } from '../context/context.ts';
import type { PortPair } from '../ports/ports.repository.ts';
import type { Draw } from './names/draw.ts';

/** 128 bits as hexadecimal digits, after a prefix: `lt` for loader tokens, `ct` for the token of a domain. */
export function newToken(prefix: 'lt' | 'ct', draw: Draw): string {
  return `${prefix}_${draw(16).toString('hex')}`;
}

export interface Draft extends GivenClientKeys {
  readonly id: string;
  readonly clientId: string;
  readonly name: string;
  readonly domains: ManifestInput['domains'];
  readonly loaderToken: string;
  readonly features: ManifestInput['features'];
  readonly modules: ManifestInput['modules'];
  readonly tls: Manifest['tls'];
  /** Already encrypted. */
  readonly containerConfig: string;
  /** Default: the image of new sites. */
  readonly image?: string;
  readonly resources?: ManifestInput['resources'];
}

/** The rules of consent that a new site gets by DEFAULT_CONSENT. */
const DEFAULTS: Readonly<Record<Settings['defaultConsent'], GivenClientKeys>> = {
  opt_out: {},
  required: { consent: 'required', consentMode: 'basic' },
};

/** The manifest of a new site with this site id and these ports. */
export function draftManifest(
  draft: Draft,
  site: string,
  ports: PortPair,
  settings: Pick<Settings, 'host' | 'image' | 'edgeDomain' | 'originDomain' | 'defaultConsent'>,
): Manifest {
  const { id, clientId, ...rest } = draft;
  return manifestSchema.parse({
    version: 1,
    site,
    client: clientId,
    container: id,
    host: settings.host,
    hostnames: {
      edge: `${site}.${settings.edgeDomain}`,
      origin: `${site}-origin.${settings.originDomain}`,
      preview: `${site}-preview.${settings.originDomain}`,
    },
    ports,
    image: settings.image,
    ...DEFAULTS[settings.defaultConsent],
    ...rest,
  });
}
