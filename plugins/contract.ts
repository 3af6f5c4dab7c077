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

/** What the plugins' `boot` hooks get of a bootstrap. They may change the profile's record. */
export interface BootDraft {
  readonly domain: RegistryDomain;
  readonly consent: Consent;
  /** The visitor's id; null without consent and for bots. */
  readonly id: string | null;
  /** The cookies that the page sent, untrusted. */
  readonly sentCookies: Readonly<Record<string, string>>;
  /** Names of all cookies of the request: in its body and, on a first-party host, in its `cookie` header. */
  readonly presentCookies: ReadonlySet<string>;
  /**
   * The profile's record. After all hooks, it is stored if they changed it, and deleted if nothing is left in it. Null
   * if there is no id, if no enabled plugin `keeps` anything, or if the store can't be read.
   */
  readonly record: ProfileRecord | null;
  /** True if the record is stored under a key that a plugin derived, not under the visitor's id. */
  readonly isDerivedKey: boolean;
  /** When the identity ends, and with it everything that is kept of the visitor; in milliseconds since the epoch. */
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
  /** Paths that the manifest forwards to the tag server; `/x/*` is for `/x` and all paths below it. */
  readonly proxyPaths: readonly string[];
  /** The names of the pages' data layers that the manifest states, beside `dataLayer`. */
  readonly dataLayers: readonly string[];
}

/** What the edge knows of the visitor, also if there are hops between them. */
interface Visitor {
  /** Null if it is unknown. */
  readonly address: string | null;
  /** ISO 3166-1 alpha-2, and the part of ISO 3166-2 after the hyphen; null if unknown. */
  readonly country: string | null;
  readonly region: string | null;
  /** The city's name, if Cloudflare states it of its own peer. */
  readonly city?: string | undefined;
  /**
   * True if the platform, or a hop with a valid secret or token, states the address. Otherwise the address may be that
   * of a server in between.
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

/** All that a plugin may use. `memory` and `shared` are private to the site. A copy made with `...` lacks members. */
export interface PluginContext<Settings = unknown> extends CacheScope {
  readonly settings: Settings;
  readonly site: Site;
  /** The URL as the visitor's browser sees it, with scheme, host and port. Under a prefix, the first use parses it. */
  readonly url: URL;
  /** The URL's host without the port, and its query (with `?`, or empty). Reading them parses nothing. */
  readonly hostname: string;
  readonly search: string;
  /** The origin of `url` and, if there is one, the prefix; no slash at the end. All URLs for the page begin with it. */
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
  /** A cache across sites, for data that reveals nothing of any site. Keys must name all that the data depends on. */
  readonly acrossSites: CacheScope;
  /** The data centre's cache; `key` is a path that the plugin chooses. */
  readonly cache: {
    match(key: string): Promise<Response | undefined>;
    /** Stores the response by its own `cache-control`. Never rejects: a failure is logged. */
    put(key: string, response: Response): Promise<void>;
  };
  readonly fetch: typeof fetch;
  readonly now: () => number;
  /** The active domain that `host` equals or is under; the longest match wins. */
  domainOf(host: string): RegistryDomain | undefined;
  /** True if the loader token belongs to this site and has not expired. */
  ownsLoader(token: string): Promise<boolean>;
  /** True for a verified or self-declared bot. It gets no id, and nothing is stored, restored or deleted for it. */
  readonly isBot: boolean;
  /** 0 to 100: how surely a bot sent the request. Between 0 and 100 only with Cloudflare's Bot Management. */
  readonly botScore: number;
  /**
   * Whether an enabled plugin keeps something in the profile's record; undefined while EDGE_CONFIG can't be read. If it
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
   * Whether EDGE_CONFIG allows this plugin. If the document is late, this waits for the lookup that the request has
   * already begun, and starts no second one. If the document can't be read, the plugin is allowed.
   */
  isConfirmed(): Promise<boolean>;
  /** The site's rules of consent at the visitor's place; the strictest ones if the place is unknown. */
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
    /** What the visitor allows, if the request states it. */
    consent?: ConsentState;
    /** The version of the web container, if its script is the answer. */
    webContainerVersion?: string | null;
    /** Why a call of another server failed. Must contain no data of the visitor. */
    cause?: string;
  }): void;
  /** Counts something in this request's log record, as `<plugin>.<name>`; the name is snake_case. */
  count(name: string): void;
  /**
   * For a `before` hook: what the tag server is told of the visitor, in place of what it would be. `headers` are of
   * those that no visitor may send (`TOLD_HEADERS` in `edge/http/request-headers.ts`); others throw. `address`: null
   * tells none.
   */
  tellTagServer(told: {
    readonly headers?: Readonly<Record<string, string>>;
    readonly address?: string | null;
  }): void;
  /** Logs an event that an operator should know of, with the site's id. */
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
  /** The request's header of this name (in lower case). Unlike `request`, it costs no copy under a prefix. */
  header(name: string): string | null;
  readonly params: Readonly<Record<string, string>>;
  readonly body: Body;
}

/** A route whose path the plugin states. GET also answers HEAD; ALL takes every method. */
export interface Route<Settings = unknown, Body = unknown> {
  readonly method: 'GET' | 'POST' | 'ALL';
  /** `/x/:name.js`, `/x/*` or an exact path. */
  readonly path: string;
  /** Lets only pages of the site's domains read the answer across origins, with credentials. */
  readonly cors?: true;
  /** May set the cookie `_fpid`, which is removed from all other routes' answers. Only one route may have this. */
  readonly setsId?: true;
  /** Its requests are passed on to the tag server. */
  readonly forwards?: true;
  /** Answers 304 if `if-none-match` names the response's etag. */
  readonly conditional?: true;
  /** Schema of a JSON body. Without one the body is not read. */
  readonly body?: z.ZodMiniType<Body>;
  handle(input: RouteInput<Body>, context: PluginContext<Settings>): Response | Promise<Response>;
  /** The answer if the site has disabled the plugin. Without `whenOff`, the path is then unknown. */
  whenOff?(): Response;
}

interface PluginBase<Settings> {
  /** snake_case. The name of the folder, of the key in EDGE_CONFIG's modules, and of the member of `/boot`'s answer. */
  readonly name: string;
  readonly config: z.ZodMiniType<Settings>;
  readonly routes: readonly Route<Settings>[];
  /** Names of the worker's environment variables that the plugin reads: settings for all sites of a deployment. */
  readonly variables?: readonly string[];
  /** Routes whose paths are named only by the site's documents. They match after all of `routes`. */
  readonly dynamic?: {
    /** Its requests are passed on to the tag server. */
    readonly forwards?: true;
    owns(path: string, site: Site, settings: Settings): boolean;
    handle(input: RouteInput, context: PluginContext<Settings>): Promise<Response>;
  };
  /**
   * Addresses that other software has chosen, below a domain's prefix: for GET, recognised by path and query. They
   * precede all routes except those that end with `/*`. Answers 304 if `if-none-match` names the response's etag.
   */
  readonly prefixed?: {
    /** `path` is without the prefix; `query` begins with `?`, or is empty. */
    owns(address: { readonly path: string; readonly query: string }, site: Site, settings: Settings): boolean;
    handle(input: RouteInput, context: PluginContext<Settings>): Promise<Response>;
  };
  /** Days from an identity's start to its end, as the site's options say. */
  identityDays?(settings: Settings): number | undefined;
  /** True if the plugin keeps something in the profiles' records. */
  readonly keeps?: true;
  /** Derives the key of the visitor's record, in place of the id. Also called if the plugin is off, to delete it. */
  profileKey?(cookies: NamedCookies, context: PluginContext<Settings>): Promise<string | undefined>;
  /**
   * Names of the cookies from which `profileKey` derives its keys. The loader sends them with a withdrawal, too. If the list
   * is empty, `profileKey` isn't called.
   */
  keyCookies?(settings: Settings): readonly string[];
  /**
   * Gets the `Set-Cookie` lines of an answer other than the bootstrap's, without the lines that the site may not set.
   * Runs in the background: the response doesn't wait for it.
   */
  passedCookies?(lines: readonly string[], request: Request, context: PluginContext<Settings>): Promise<void>;
  /** Text of a script that is sent with the loader. */
  readonly pageScript?: string;
  /** Cookie names (or prefixes ending in `*`) that the loader sends with the bootstrap. It sends no others. */
  wantedCookies?(settings: Settings): readonly string[];
  /** Cookie names (or prefixes ending in `*`) that the tag server gets in addition to the usual ones. */
  tagServerCookies?(settings: Settings): readonly string[];
  /**
   * Runs before the route. The first Response wins. A Request takes the place of this one for the next hooks and the
   * handler: its path must be the same, and its body doesn't matter to a route that has a schema for it.
   */
  before?(
    request: Request,
    context: PluginContext<Settings>,
    route: { readonly forwards: boolean },
  ): Promise<Request | Response | undefined>;
  /** Nothing is passed on to the tag server if `before` fails: what it removes must not pass. */
  readonly failsClosed?: true;
  /** Names of plugins that must stand earlier in the list, so that their hooks `before` run first. */
  readonly follows?: readonly string[];
  /** Runs after the route, in reverse order. */
  after?(response: Response, request: Request, context: PluginContext<Settings>): Promise<Response>;
  /** Takes part in the bootstrap. The result, if any, is the answer's member with the plugin's name, as JSON. */
  boot?(context: PluginContext<Settings>, draft: BootDraft): unknown;
  /** The name of the member that `boot` returns, if it is not the plugin's name but one of `BootMembers`. */
  readonly bootMember?: string;
  /** Chooses the domains to serve; inactive ones are never served. If no enabled plugin has this hook: the first domain. */
  domains?(all: readonly RegistryDomain[]): readonly RegistryDomain[];
}

/**
 * A plugin is on unless the site's options say `enabled: false`; with `alwaysOn` it is on in any case. An optional one
 * also needs its flag.
 */
export type Plugin<Settings = unknown> = PluginBase<Settings> &
  (
    | { readonly kind: 'mandatory'; readonly alwaysOn?: true }
    | { readonly kind: 'optional'; readonly flag: string }
  );

/**
 * Infers the type of the settings from `config`.
 *
 * @example
 * export default definePlugin({
 *   name: 'greeting',
 *   kind: 'optional',
 *   flag: 'greeting',
 *   config: z.strictObject({ text: z._default(z.string(), 'hello') }),
 *   routes: [{ method: 'GET', path: '/greeting', handle: (_, { settings }) => new Response(settings.text) }],
 * });
 */
export function definePlugin<Settings>(plugin: Plugin<Settings>): Plugin<Settings> {
  return plugin;
}

/** Infers the type of the body from its schema. */
export function defineRoute<Settings, Body>(route: Route<Settings, Body>): Route<Settings, Body> {
  return route;
}
