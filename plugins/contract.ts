import type * as z from 'zod/mini';
import type { Consent, ConsentChoices, ConsentRules, ConsentState } from './consent.ts';
import type { RegistryDomain } from './document.ts';
import type { NamedCookies, ProfileRecord, ProfileStore } from './profile.ts';

/** The errors that a plugin may throw (`problem`); the core answers them as problem+json. */
export type PluginErrorCode =
  | 'malformed_request'
  | 'unknown_loader'
  | 'unknown_site'
  | 'unknown_container'
  | 'upstream_failed';

/** A cookie that a bootstrap restores. `maxAge` in seconds; `domain` is null for a host-only cookie. */
export interface RestoredCookie {
  readonly name: string;
  readonly value: string;
  readonly maxAge: number;
  readonly domain: string | null;
  readonly path: string;
  readonly sameSite: 'Lax';
  readonly secure: boolean;
}

/** What the plugins' `boot` hooks learn of a bootstrap. The profile's record is theirs to change. */
export interface BootDraft {
  readonly domain: RegistryDomain;
  readonly consent: Consent;
  /** The visitor's id; null without consent and for bots. */
  readonly id: string | null;
  /** The cookies that the page sent, untrusted. */
  readonly sentCookies: Readonly<Record<string, string>>;
  /** Names of all cookies that the request has: those that the page sent and, on a first-party host, its header's. */
  readonly presentCookies: ReadonlySet<string>;
  /**
   * The profile's record. After all hooks it is stored if they changed it, and deleted if they keep nothing. Null
   * where there is no id, no enabled plugin `keeps` anything, or the store can't be read.
   */
  readonly record: ProfileRecord | null;
  /** True where the record is stored under a key that a plugin derived, not under the visitor's id. */
  readonly isDerivedKey: boolean;
  /** When the identity ends, and with it all that is kept of it; in milliseconds since the epoch. */
  readonly endsAt: number;
  /** `Set-Cookie` lines that a hook adds to the answer of a first-party host: cookies that no script may set. */
  readonly setCookies: string[];
}

/** The members that `/boot` itself answers: no plugin has one of these names. */
export const CORE_BOOT_MEMBERS = [
  'container',
  'site',
  'features',
  'profile',
  'session',
  'deleteCookies',
] as const;

/** The members that plugins add to the answer of `/boot`, as JSON values. */
interface BootMembers {
  /** Cookies for the page to write, if it has none of that name. On a first-party host the answer sets them, too. */
  readonly restoreCookies?: readonly RestoredCookie[];
  readonly [member: string]: unknown;
}

/** The site of a request, from the routing entry and the registry. */
export interface Site {
  readonly siteId: string;
  readonly containerId: string;
  /** The site's edge hostname, from the routing entry. */
  readonly edgeHost: string;
  /** The active domains, the primary one first. */
  readonly domains: readonly RegistryDomain[];
  /** Paths that the manifest forwards to the tag server, and prefixes, which end with `/*`. */
  readonly proxyPaths: readonly string[];
  /** The names of the pages' data layers that the manifest states, beside `dataLayer`. */
  readonly dataLayers: readonly string[];
}

/** What the edge knows of the visitor, whichever hops are between. */
interface Visitor {
  /** Null where it is unknown. */
  readonly address: string | null;
  /** ISO 3166-1 alpha-2, and the part of ISO 3166-2 after the hyphen; null where unknown. */
  readonly country: string | null;
  readonly region: string | null;
  /**
   * The platform or a hop with a valid secret or token states the address. False where the peer may be a server in between:
   * then the address may be that server's.
   */
  readonly isTrusted: boolean;
}

/** A response with its body in memory. It is shared between requests, so it must not be changed. */
export interface SharedBody {
  readonly headers: Headers;
  readonly body: ArrayBuffer;
}

/** Data shared between the requests of one isolate. Keys are private to the plugin. */
export interface CacheScope {
  /** A few whole responses in memory. Any of them can be evicted at any time. */
  readonly memory: {
    get(key: string): SharedBody | undefined;
    put(key: string, body: SharedBody): void;
  };
  /** Runs `run` once for all requests that ask for `key` until it finishes. */
  shared(key: string, run: () => Promise<SharedBody>): Promise<SharedBody>;
}

/** All that a plugin may use. `memory` and `shared` are private to the site; `acrossSites` is not. A copy lacks members. */
export interface PluginContext<Settings = unknown> extends CacheScope {
  readonly settings: Settings;
  readonly site: Site;
  /** The URL as the visitor's browser sees it, with scheme, host and port. Under a prefix, its first reader parses it. */
  readonly url: URL;
  /** Its host without the port, and its query with `?` or empty: without parsing. */
  readonly hostname: string;
  readonly search: string;
  /** The origin of `url` and the prefix of a same-origin domain, without a slash at the end: all URLs for the page begin so. */
  readonly base: string;
  readonly visitor: Visitor;
  /** Base URL of the vendor's scripts. */
  readonly vendor: string;
  /** The deployment's variables that the plugins declare, by name. A variable that is not set is missing. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly features: Readonly<Record<string, boolean>>;
  /** The scripts that the enabled plugins add to the loader, and the cookies that they ask the page to send. */
  readonly pageScripts: readonly string[];
  readonly wantedCookies: readonly string[];
  /** The cookies from which plugins, disabled ones included, derive keys of profiles. */
  readonly keyCookies: readonly string[];
  readonly profiles: ProfileStore;
  /** A cache of data that is the same for every site and reveals nothing of any. Its key must name what the data depends on. */
  readonly acrossSites: CacheScope;
  /** The data centre's cache; `key` is a path of the plugin's choice. */
  readonly cache: {
    match(key: string): Promise<Response | undefined>;
    /** Stores the response by its own `cache-control`. Never rejects: a failure is logged. */
    put(key: string, response: Response): Promise<void>;
  };
  readonly fetch: typeof fetch;
  readonly now: () => number;
  /** The active domain that `host` equals or is under; the longest match wins. */
  domainOf(host: string): RegistryDomain | undefined;
  /** True where the loader token belongs to this site and has not expired. */
  ownsLoader(token: string): Promise<boolean>;
  /** True for a verified or self-declared bot. It gets no id, and nothing is stored, restored or deleted for it. */
  readonly isBot: boolean;
  /**
   * Whether an enabled plugin keeps something in the profile's record; undefined while EDGE_CONFIG can't be read. Where it
   * is false, an earlier record is deleted.
   */
  readonly keepsProfiles: boolean | undefined;
  /** Milliseconds from an identity's start to its end. */
  readonly identityMs: number;
  /** The keys of the visitor's record that plugins derive, by their `profileKey` hooks. */
  profileKeys(cookies: NamedCookies): Promise<readonly string[]>;
  /** HMAC-SHA256 of a text as 64 hex digits, with a key of the deployment; differs between plugins and sites. */
  sign(text: string): Promise<string>;
  /**
   * Whether EDGE_CONFIG allows this plugin. If the document is late, waits for the end of the lookup that the request has
   * already begun; there is no second lookup. A document that can't be read forbids nothing.
   */
  isConfirmed(): Promise<boolean>;
  /** The site's rules of consent at the visitor's place; the strictest ones where the place is unknown. */
  readonly consentRules: ConsentRules;
  /** What the visitor allows, given the choices made on the page. */
  consent(choices: ConsentChoices): Consent;
  /** Runs the `boot` hooks of the enabled plugins, in list order, and returns the members that they add to the answer. */
  bootstrap(draft: BootDraft): Promise<BootMembers>;
  /**
   * Sends a request to the site's tag server, over the authenticated hop and with the visitor's true address. Headers
   * that claim an address are removed. Redirects are returned, not followed.
   */
  fetchOrigin(pathAndQuery: string, init: OriginRequest): Promise<Response>;
  /** Adds members to this request's log record. */
  log(fields: {
    cache?: 'hit' | 'miss' | 'stale' | 'bypass';
    signals?: Readonly<Record<string, boolean>>;
    /** What the visitor allows, where the request states it. */
    consent?: ConsentState;
    /** The version of the web container whose script is the answer. */
    webContainerVersion?: string | null;
    /** Why a call of another server failed, without anything of the visitor. */
    cause?: string;
  }): void;
  /** Logs an event that an operator has to know of, with the site's id. */
  report(event: string): void;
  waitUntil(work: Promise<unknown>): void;
  /** A strong entity tag for these octets. */
  etagOf(data: ArrayBuffer | Uint8Array): Promise<string>;
  /** Makes an error to throw: the core answers it as problem+json. */
  problem(code: PluginErrorCode, detail?: string): Error;
}

export interface OriginRequest {
  readonly method: string;
  readonly headers: Headers;
  readonly body?: ReadableStream | string | null;
}

/** What a route's handler gets: the request, the decoded path parameters and the parsed body. */
export interface RouteInput<Body = unknown> {
  readonly request: Request;
  /** Its header of this name, in lower case. Under a prefix, reading only headers costs no copy of the request. */
  header(name: string): string | null;
  readonly params: Readonly<Record<string, string>>;
  readonly body: Body;
}

/** A literal route. GET also answers HEAD; ALL takes every method. */
export interface Route<Settings = unknown, Body = unknown> {
  readonly method: 'GET' | 'POST' | 'ALL';
  /** `/x/:name.js`, `/x/*` or an exact path. */
  readonly path: string;
  /** Lets pages of the site's domains read the answer across origins, with credentials, and no other page. */
  readonly cors?: true;
  /** Its handler may set the cookie `_fpid`, which is removed from every other answer. Only one route may set this. */
  readonly setsId?: true;
  /** Answers 304 where `if-none-match` names the response's etag. */
  readonly conditional?: true;
  /** Schema of a JSON body. Without one the body is not read. */
  readonly body?: z.ZodMiniType<Body>;
  handle(input: RouteInput<Body>, context: PluginContext<Settings>): Response | Promise<Response>;
  /** The answer where the site has disabled the plugin. Without it, the path is unknown there. */
  whenOff?(): Response;
}

interface PluginBase<Settings> {
  /** snake_case. The name of the folder, of the key in EDGE_CONFIG's modules, and of the member of `/boot`'s answer. */
  readonly name: string;
  readonly config: z.ZodMiniType<Settings>;
  readonly routes: readonly Route<Settings>[];
  /** Names of the worker's environment variables that it reads: settings for all sites of a deployment. */
  readonly variables?: readonly string[];
  /** Paths that only the site's own documents name. They match after all literal routes. */
  readonly dynamic?: {
    owns(path: string, site: Site): boolean;
    handle(input: RouteInput, context: PluginContext<Settings>): Promise<Response>;
  };
  /**
   * Addresses below a domain's prefix that other software has chosen, for GET, recognised by path and query. They match before
   * all routes but those of many paths (`/_/*`). Answers 304 where `if-none-match` names the response's etag.
   */
  readonly prefixed?: {
    /** `path` is without the prefix; `query` begins with `?`, or is empty. */
    owns(address: { readonly path: string; readonly query: string }, site: Site, settings: Settings): boolean;
    handle(input: RouteInput, context: PluginContext<Settings>): Promise<Response>;
  };
  /** Days from an identity's start to its end, as the site's options say. */
  identityDays?(settings: Settings): number | undefined;
  /** True where it keeps something in the profiles' records. */
  readonly keeps?: true;
  /** Derives the key of the visitor's record, in place of the id. Also called if the plugin is off, to delete all. */
  profileKey?(cookies: NamedCookies, context: PluginContext<Settings>): Promise<string | undefined>;
  /**
   * Names of the cookies from which `profileKey` derives its keys. The loader sends them with a withdrawal, too. If the list
   * is empty, `profileKey` isn't called.
   */
  keyCookies?(settings: Settings): readonly string[];
  /**
   * Learns of the `Set-Cookie` lines that an answer other than the bootstrap's sets, after the core has dropped those that
   * the site may not set. Runs after the response is sent.
   */
  passedCookies?(lines: readonly string[], request: Request, context: PluginContext<Settings>): Promise<void>;
  /** Text of a script that is sent with the loader. */
  readonly pageScript?: string;
  /** Cookie names (or prefixes ending in `*`) that the loader sends with the bootstrap. It sends no others. */
  wantedCookies?(settings: Settings): readonly string[];
  /** Runs before the route. The first Response wins. */
  before?(request: Request, context: PluginContext<Settings>): Promise<Response | undefined>;
  /** Runs after the route, in reverse order. */
  after?(response: Response, request: Request, context: PluginContext<Settings>): Promise<Response>;
  /** Takes part in the bootstrap. Its result is the answer's member of the plugin's name, as JSON; `undefined`: none. */
  boot?(context: PluginContext<Settings>, draft: BootDraft): unknown;
  /** The member that `boot` returns, where it is one of `BootMembers` and not that of the plugin's name. */
  readonly bootMember?: string;
  /** Chooses the domains to serve; inactive ones are never served. If no enabled plugin has this hook: the first domain. */
  domains?(all: readonly RegistryDomain[]): readonly RegistryDomain[];
}

/**
 * A mandatory plugin is on unless the site's options say `enabled: false`; with `alwaysOn` it is on in any case. An optional
 * one is on by its flag.
 */
export type Plugin<Settings = unknown> = PluginBase<Settings> &
  (
    | { readonly kind: 'mandatory'; readonly alwaysOn?: true }
    | { readonly kind: 'optional'; readonly flag: string }
  );

/** Infers the type of the settings from `config`. */
export function definePlugin<Settings>(plugin: Plugin<Settings>): Plugin<Settings> {
  return plugin;
}

/** Infers the type of the body from its schema. */
export function defineRoute<Settings, Body>(route: Route<Settings, Body>): Route<Settings, Body> {
  return route;
}
