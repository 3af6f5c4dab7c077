import type { Log } from '../../../base/log.ts';
import type { Identity } from '../../../base/ownership.ts';
import type { ContainerSettings } from '../../../sites/manifest/containers.ts';
import type { Applier } from '../contract.ts';
import type { Registration } from '../registration.ts';
import { proxyApplier } from './applier.ts';
import type { ProxyBackend } from './backend.ts';
import type { CertificateSource } from './certificates.ts';
import type { CloudflareRanges } from './cloudflare-ranges.ts';
import { POLICY, PROXY } from './desired.ts';
import { policyApplier } from './policy-applier.ts';
import { proxySettings } from './settings.ts';

interface Services {
  readonly identity: Identity;
  readonly containers: ContainerSettings;
  readonly certificates: CertificateSource;
  readonly ranges: CloudflareRanges;
  readonly log: Log;
  /** Started: other appliers need its port, see `proxyDriver`. */
  readonly proxy: ProxyBackend;
  /** The appliers that come before this one in the order. */
  readonly earlier: readonly Applier[];
}

/** The policy scripts that tag servers read when they start, served by the same proxy. */
export const policyScripts: Registration<typeof proxySettings, Services> = {
  ...POLICY,
  settings: proxySettings,
  create: (_settings, { proxy: backend, identity, containers }) =>
    policyApplier({ backend, identity, containers }),
};

/** A site's vhosts, in nginx or in the embedded proxy. */
export const proxy: Registration<typeof proxySettings, Services> = {
  ...PROXY,
  settings: proxySettings,
  create: (_settings, { proxy: backend, earlier, ...services }) =>
    proxyApplier({
      ...services,
      backend,
      isExpecting: () => earlier.some((one) => one.isBringingUp?.()),
    }),
};
