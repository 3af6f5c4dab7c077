import type { FastifyBaseLogger } from 'fastify';
import type { Clock } from '../../gitops/base/clock.ts';
import type { SitesRepo } from '../../gitops/sites-repo/sites-repo.ts';
import type { ProvisionerClient } from '../clients/provisioner-client.ts';
import type { VerificationClient } from '../clients/verification-client.ts';
import type { ConnectedDatabase } from '../db/connected.ts';
import type { Authenticate } from '../http/auth.ts';
import type { Limits } from '../http/limits.ts';
import type { HostRoom } from './host-room.ts';

/** The settings of one installation. */
export interface Settings {
  /** The host that new sites run on, and whose port pool is used. */
  readonly host: string;
  /** Pinned by digest, or the id of a local image. */
  readonly image: string;
  /** The repositories from which operators may set images through the API; `local`: images without a name. */
  readonly imageRepositories: readonly string[];
  readonly edgeDomain: string;
  readonly originDomain: string;
  /** The rules of consent of new sites: `required` means `consent: required` and `consentMode: basic`. */
  readonly defaultConsent: 'opt_out' | 'required';
  /** Further domains of the operator. No site gets a name in or above their registrable domains. */
  readonly platformDomains: readonly string[];
  /** With `{host}` in the place of the edge hostname: `https://{host}`. */
  readonly edgePublicUrl: string;
  /** The same for custom domains. */
  readonly customPublicUrl: string;
  /** The vendor's base URL, which a snippet falls back to. */
  readonly vendorUrl: string;
  /** `age1…` of the host that decrypts the container configuration. */
  readonly ageRecipient: string;
  /** The key that forwarders' tokens are computed from. `null`: this installation makes none. */
  readonly forwarderKey: string | null;
  /** Subjects that may create clients and members. They act on containers only as members. */
  readonly superAdmins: readonly string[];
  /** Milliseconds between two polls of an operation of the provisioner. */
  readonly followMs: number;
  /** Milliseconds between two polls of the provisioner's site statuses. */
  readonly watchMs: number;
  /** Milliseconds after which a creation is answered, even if the provisioner hasn't accepted or refused it yet. */
  readonly answerMs: number;
  readonly limits: Limits;
  /** Addresses and ranges of the proxies whose `x-forwarded-for` is trusted. Empty: none. */
  readonly trustedProxies: readonly string[];
  /** The bearer token of `/metrics`. `null`: only callers on this machine may read it. */
  readonly metricsToken: string | null;
  /** Days after which history is deleted; 0: never. */
  readonly retentionDays: { readonly audit: number; readonly events: number; readonly operations: number };
}

/** What the parts of management work with. */
export interface Context {
  readonly authenticate: Authenticate;
  readonly db: ConnectedDatabase;
  readonly repo: SitesRepo;
  readonly provisioner: ProvisionerClient;
  readonly room: HostRoom;
  /** `null`: this installation has no verification worker. */
  readonly verifier: VerificationClient | null;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly log: FastifyBaseLogger;
}
