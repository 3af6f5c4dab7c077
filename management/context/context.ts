import type { FastifyBaseLogger } from 'fastify';
import type { Clock } from '../../base/clock.ts';
import type { VerificationClient } from '../../edge/verification/client.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import type { SitesRepo } from '../../sites/repo/sites-repo.ts';
import type { MailSettings } from '../clients/mail-client.ts';
import type { ProvisionerClient } from '../clients/provisioner-client.ts';
import type { Resolvers } from '../clients/resolvers.ts';
import type { ConnectedDatabase } from '../db/connected.ts';
import type { Authenticate } from '../http/auth.ts';
import type { Limits } from '../http/limits.ts';
import type { OpenStreams } from '../http/open-streams.ts';
import type { RawObjects } from '../raw-objects/raw-objects.ts';
import type { HostRoom } from './host-room.ts';

/** The limits of a client, an organisation (`members` and `tokens` hold for it, too) or a person. `null`: no limit. */
interface Quotas {
  /** Without removed and failed ones. */
  readonly containers: number | null;
  readonly members: number;
  readonly tokens: number;
  /** Without archived ones. */
  readonly clientsPerOrganisation: number;
  /** Clients of which one person is a member, not through an organisation; without archived ones. */
  readonly clientsPerPerson: number;
}

/** An account that a login page offers. */
interface LoginHint {
  readonly hint: string;
  readonly name: string;
  readonly description: string;
}

/** People's logins in browsers. */
export interface LoginSettings {
  /** The OpenID provider's issuer. */
  readonly issuer: string;
  readonly clientId: string;
  /** The claim that says who a person is, the same as for bearer tokens. */
  readonly subjectClaim: string;
  /** `null`: a public client. */
  readonly clientSecret: string | null;
  /** The API's own URL as browsers reach it, without a slash at its end. */
  readonly publicUrl: string;
  /** Accounts for which login pages have a button each; the provider gets `hint` as `login_hint`. */
  readonly hints: readonly LoginHint[];
  /** A session that isn't used for this long ends. */
  readonly idleSeconds: number;
  /** The longest session. */
  readonly absoluteSeconds: number;
}

/** How traffic is collected, and how long its sums are kept. */
interface TrafficSettings {
  /** Milliseconds between two searches for new objects. */
  readonly pollMs: number;
  /** Days for which late objects are still counted. */
  readonly lateDays: number;
  /** Hours for which sums by minute are kept, and days for the other sums; 0: for ever. */
  readonly minuteHours: number;
  readonly hourDays: number;
  readonly dayDays: number;
  /** What one container may have in a day (UTC) without a warning; `null`: any number. */
  readonly softLimits: { readonly requests: number | null; readonly events: number | null };
}

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
  /** Where the certificates of new sites come from. `null`: an authority if the host has one, else files. */
  readonly defaultTls: Manifest['tls']['mode'] | null;
  /** Further domains of the operator. No site gets a name in or above their registrable domains. */
  readonly platformDomains: readonly string[];
  /** Template of a site's URL, with `{host}` for the edge hostname: `https://{host}`. */
  readonly edgePublicUrl: string;
  /** The same for custom domains. */
  readonly customPublicUrl: string;
  /** The vendor's base URL, which a snippet falls back to. */
  readonly vendorUrl: string;
  /** `age1…` of the host that decrypts the container configuration. */
  readonly ageRecipient: string;
  /** The key that forwarders' tokens are computed from. `null`: this installation makes none. */
  readonly forwarderKey: string | null;
  /** Subjects of operators: they manage all clients and the instance, and set images. For all else they need a role. */
  readonly superAdmins: readonly string[];
  /**
   * `dns`: only the edge hostname serves a domain until a DNS record proves that it is the client's; `off`: no domain
   * needs it.
   */
  readonly domainProof: 'dns' | 'off';
  /** Milliseconds between two polls of an operation of the provisioner. */
  readonly followMs: number;
  /** Milliseconds between two polls of the provisioner's site statuses. */
  readonly watchMs: number;
  /** Milliseconds after which a creation is answered, even if the provisioner hasn't accepted or refused it yet. */
  readonly answerMs: number;
  readonly limits: Limits;
  readonly quotas: Quotas;
  /** Whether tenants may name loopback addresses, for example of webhooks: only where all runs on one machine. */
  readonly allowLoopback: boolean;
  /** Addresses and ranges of the proxies whose `x-forwarded-for` is trusted. Empty: none. */
  readonly trustedProxies: readonly string[];
  /** The bearer token of `/metrics`. `null`: only callers on this machine may read it. */
  readonly metricsToken: string | null;
  /** The secret that the edge sends to `/ingest`. `null`: there is no such route. */
  readonly ingestSecret: string | null;
  /** Where the search keeps its copies of the raw logs, and of how many days. `null`: nothing can be searched. */
  readonly searchCache: { readonly dir: string; readonly days: number } | null;
  /** `null`: people can't log in here; callers have tokens. */
  readonly login: LoginSettings | null;
  /** The API's own URL as browsers reach it, without a slash at its end; `null`: not known. */
  readonly publicUrl: string | null;
  /** `null`: this installation sends no mail. */
  readonly mail: MailSettings | null;
  /** Origins of dashboards whose pages may call the API with a token. */
  readonly dashboardOrigins: readonly string[];
  readonly traffic: TrafficSettings;
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
  readonly streams: OpenStreams;
  readonly resolvers: Resolvers;
  /** `null`: this installation has no verification worker. */
  readonly verifier: VerificationClient | null;
  /** The bucket of the raw logs. `null`: this installation has none. */
  readonly rawObjects: RawObjects | null;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly log: FastifyBaseLogger;
}
