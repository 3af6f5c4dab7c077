import * as z from 'zod/mini';
import type { RegistryDomain } from './document.ts';

/** What a plugin may answer with besides a Response of its own; the core turns it into problem+json. */
export const PLUGIN_ERROR_CODES = [
  'malformed_request',
  'unknown_loader',
  'unknown_site',
  'unknown_container',
  'upstream_failed',
] as const;
export type PluginErrorCode = (typeof PLUGIN_ERROR_CODES)[number];

/** One cookie kept for a profile; times in milliseconds since the epoch. */
const storedCookie = z.object({
  name: z.string(),
  value: z.string(),
  setAt: z.number(),
  expiresAt: z.number(),
});
export type StoredCookie = z.infer<typeof storedCookie>;

/** What the cookie store holds under `<siteId>:<_fpid>`. `lastSeenAt` decides whether the session has gone idle. */
export const profileRecord = z.object({
  version: z.literal(1),
  session: z.nullable(z.object({ id: z.string(), lastSeenAt: z.number() })),
  cookies: z.array(storedCookie),
});
export type ProfileRecord = z.infer<typeof profileRecord>;

/** What a person chose on the page, by Google's names of purposes, as a request's body states it. */
export const consentChoices = z.optional(z.catchall(z.object({}), z.literal(['granted', 'denied'])));

/** What a person's choices, `Sec-GPC` and the site's consent mode allow. */
export interface Consent {
  /** Whether any purpose is allowed, and so an id at all. */
  readonly identify: boolean;
  /** Whether a cookie of this name may be kept and restored, by the purpose that its name stands for. */
  allows(cookieName: string): boolean;
}

/** `maxAge` in seconds; `domain` is null for a host-only cookie. */
export interface RestoredCookie {
  readonly name: string;
  readonly value: string;
  readonly maxAge: number;
  readonly domain: string | null;
  readonly path: string;
  readonly sameSite: 'Lax';
  readonly secure: boolean;
}

/** The answer of a bootstrap in the making. A plugin adds to the members that are its own, and only to those. */
export interface BootDraft {
  readonly domain: RegistryDomain;
  readonly consent: Consent;
  /** What the page sent of its own cookies, untrusted. */
  readonly sentCookies: Readonly<Record<string, string>>;
  /** What the store will hold of this profile; null where there is no id or the store can't be read. */
  readonly record: ProfileRecord | null;
  /** cookie_restoration's own. */
  restoreCookies: readonly RestoredCookie[];
}

/** Where a request belongs, from the routing entry and the registry. */
export interface Site {
  readonly siteId: string;
  readonly containerId: string;
  /** The site's edge hostname, as the routing entry names it. */
  readonly edgeHost: string;
  /** The domains that are on, the primary one first. */
  readonly domains: readonly RegistryDomain[];
  /** Exact paths that the manifest hands to the tag server. */
  readonly proxyPaths: readonly string[];
}

/** A site's profiles; keys of other sites are out of reach. Both fail silently: nothing read, nothing kept. */
export interface ProfileStore {
  /** `undefined` where the store can't be read, `null` where it holds nothing under that id. */
  read(id: string): Promise<ProfileRecord | null | undefined>;
  /** Keeps the record, or with `null` deletes it. */
  write(id: string, record: ProfileRecord | null): Promise<void>;
}

/** An answer with its body in memory, shared between requests: to be read, not changed. */
export interface SharedBody {
  readonly headers: Headers;
  readonly body: ArrayBuffer;
}

/** What the requests of one isolate have in common. Keys are the plugin's own: no other plugin reads or joins them. */
export interface Shelf {
  /** A few whole responses in memory; any may be gone at any time. */
  readonly memory: {
    get(key: string): SharedBody | undefined;
    put(key: string, body: SharedBody): void;
  };
  /** One run for all requests that ask for `key` while it is under way. */
  shared(key: string, run: () => Promise<SharedBody>): Promise<SharedBody>;
}

/** All that a plugin may touch; memory and runs are this site's alone, but for `acrossSites`. Tests pass fakes, the worker passes bindings. */
export interface PluginContext<Settings = unknown> extends Shelf {
  readonly settings: Settings;
  readonly site: Site;
  /** The address as the visitor's browser sees it: scheme, host and port included. */
  readonly url: URL;
  /** Base URL of the vendor's scripts. */
  readonly vendor: string;
  /** The deployment's settings that the plugins declare, by name; empty where the operator hasn't set them. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly features: Readonly<Record<string, boolean>>;
  /** Scripts that the mounted plugins add to the loader, and the cookies that they ask the page to send along. */
  readonly pageScripts: readonly string[];
  readonly wantedCookies: readonly string[];
  readonly profiles: ProfileStore;
  /** For what is the same for every site by nature, and says nothing of any: its key must name all that it depends on. */
  readonly acrossSites: Shelf;
  /** Cache of this data centre; `key` is a path of the plugin's own making. */
  readonly cache: {
    match(key: string): Promise<Response | undefined>;
    /** Keeps the response by its own `cache-control`; a cache that fails is logged, no more. */
    put(key: string, response: Response): Promise<void>;
  };
  readonly fetch: typeof fetch;
  readonly now: () => number;
  /** The active domain that `host` is equal to or under; the longest match wins. */
  domainOf(host: string): RegistryDomain | undefined;
  /** True where the loader token belongs to this site and hasn't run out. */
  ownsLoader(token: string): Promise<boolean>;
  /** What may be done for this person, given what they chose on the page. */
  consent(choices: Readonly<Record<string, 'granted' | 'denied'>>): Consent;
  /** Lets every mounted plugin add to the draft, in list order. */
  bootstrap(draft: BootDraft): Promise<void>;
  /**
   * A request to the site's tag server, over the authenticated hop and with the visitor's true address; headers
   * that claim an address are taken out. Redirects are handed back, not followed.
   */
  fetchOrigin(pathAndQuery: string, init: OriginRequest): Promise<Response>;
  /** Adds members to this request's log record. */
  log(fields: {
    cache?: 'hit' | 'miss' | 'stale' | 'bypass';
    signals?: Readonly<Record<string, boolean>>;
  }): void;
  waitUntil(work: Promise<unknown>): void;
  /** A strong entity tag of these octets. */
  etagOf(data: ArrayBuffer | Uint8Array): Promise<string>;
  /** An error to throw: the core answers it as problem+json. */
  problem(code: PluginErrorCode, detail?: string): Error;
}

export interface OriginRequest {
  readonly method: string;
  readonly headers: Headers;
  readonly body?: ReadableStream | string | null;
}

/** What a route's handler gets: the request, the path's parameters (decoded) and the parsed body. */
export interface RouteInput<Body = unknown> {
  readonly request: Request;
  readonly params: Readonly<Record<string, string>>;
  readonly body: Body;
}

/** A literal route. GET answers HEAD too; ALL takes every method. */
export interface Route<Settings = unknown, Body = unknown> {
  readonly method: 'GET' | 'POST' | 'ALL';
  /** `/x/:name.js`, `/x/*` or an exact path. */
  readonly path: string;
  /** Answers the site's pages across origins, with credentials, and no other origin. */
  readonly cors?: true;
  /** Answers 304 where the response's etag is the one that the caller has. */
  readonly conditional?: true;
  /** Schema of a JSON body; without one the body stays unread. */
  readonly body?: z.ZodMiniType<Body>;
  handle(input: RouteInput<Body>, context: PluginContext<Settings>): Response | Promise<Response>;
  /** The answer where the site has turned the plugin off; without it the path is unknown there. */
  whenOff?(): Response;
}

interface PluginBase<Settings> {
  /** snake_case: folder, key in EDGE_CONFIG's modules, field in the log. */
  readonly name: string;
  readonly config: z.ZodMiniType<Settings>;
  readonly routes: readonly Route<Settings>[];
  /** Names of the worker's environment variables that it reads: what holds for all sites of a deployment. */
  readonly variables?: readonly string[];
  /** Paths that only the site's own documents name, looked up after all literal routes. */
  readonly dynamic?: {
    owns(path: string, site: Site): boolean;
    handle(input: RouteInput, context: PluginContext<Settings>): Promise<Response>;
  };
  /** Text of a script that goes out with the loader. */
  readonly pageScript?: string;
  /** Cookie names (or prefixes ending in `*`) that the loader sends with the bootstrap; no others leave the page. */
  wantedCookies?(settings: Settings): readonly string[];
  /** Runs before the route; the first Response wins. */
  before?(request: Request, context: PluginContext<Settings>): Promise<Response | undefined>;
  /** Runs after the route, in reverse order. */
  after?(response: Response, request: Request, context: PluginContext<Settings>): Promise<Response>;
  boot?(context: PluginContext<Settings>, draft: BootDraft): Promise<void>;
  /** Which of the registry's domains are on; without a mounted plugin that says, the primary one. */
  domains?(all: readonly RegistryDomain[]): readonly RegistryDomain[];
}

/** Mandatory: on unless the site's document says `enabled: false`. Optional: on by its flag. */
export type Plugin<Settings = unknown> = PluginBase<Settings> &
  ({ readonly kind: 'mandatory' } | { readonly kind: 'optional'; readonly flag: string });

/** Infers the settings of hooks and handlers from `config`. */
export function definePlugin<Settings>(plugin: Plugin<Settings>): Plugin<Settings> {
  return plugin;
}

/** Infers the body of a handler from its schema. */
export function defineRoute<Settings, Body>(route: Route<Settings, Body>): Route<Settings, Body> {
  return route;
}
