import { randomBytes } from 'node:crypto';
import { type Manifest, type ManifestInput, manifestSchema } from '../../gitops/manifest/schema.ts';
import type { Settings } from '../context/context.ts';
import type { PortPair } from '../ports/ports.repository.ts';
import type { GivenConsent } from './consent.ts';

/** 128 random bits as hexadecimal digits, after a prefix: `lt` for loaders, `ct` for containers. */
export function newToken(prefix: 'lt' | 'ct'): string {
  return `${prefix}_${randomBytes(16).toString('hex')}`;
}

export interface Draft {
  readonly id: string;
  readonly clientId: string;
  readonly name: string;
  readonly domains: ManifestInput['domains'];
  readonly features: ManifestInput['features'];
  readonly modules: ManifestInput['modules'];
  readonly consent: GivenConsent;
  /** Already encrypted. */
  readonly containerConfig: string;
}

/** The rules of consent that a new site gets by DEFAULT_CONSENT. */
const DEFAULTS: Readonly<Record<Settings['defaultConsent'], GivenConsent>> = {
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
  const { id, clientId, consent, ...rest } = draft;
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
    loaderToken: newToken('lt'),
    image: settings.image,
    ...DEFAULTS[settings.defaultConsent],
    ...consent,
    ...rest,
  });
}
