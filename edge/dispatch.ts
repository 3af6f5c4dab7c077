import type { Plugin, PluginContext, RouteInput, Site } from '../plugins/contract.ts';
import type { Enabled } from './gate.ts';
import {
  answerOrRequest,
  type GuardDependencies,
  guardHandler,
  guardHook,
  responseOf,
  valueOr,
} from './guard.ts';
import { readJson } from './http/body.ts';
import { answerConditional } from './http/conditional.ts';
import { allowedOrigin, preflight } from './http/cors.ts';
import { EdgeError } from './http/errors.ts';
import { idCookies, withOwnCookies } from './http/set-cookies.ts';
import { withHeaders } from './http/with-headers.ts';
import type { Match, Mounted } from './router.ts';

/** One request at its site, ready for plugin code. */
interface Call {
  /**
   * The request as it came. Under a prefix, only its method, its body and headers that the prefix doesn't change may be
   * read.
   */
  readonly request: Request;
  /** The request as plugins get it. */
  readonly served: () => Request;
  /** A header of that request. */
  readonly header: (name: string) => string | null;
  readonly site: Site;
  /** The registrable domains of the site's domains. Cookies may be set only for hosts under them. */
  readonly ownHosts: readonly string[];
  /** The site's plugins, in list order. */
  readonly enabled: readonly Enabled[];
  readonly contextOf: (enabled: Enabled) => PluginContext;
  readonly guard: GuardDependencies;
}

/** How a request will be answered, decided before its body is read and before any hook or handler runs. */
export interface Handling {
  /**
   * The origin whose pages may read the answer, even if it is an error. `null`: the request names none. `undefined`:
   * the route is not for other origins.
   */
  readonly cors?: string | null | undefined;
  readonly handle: () => Promise<Response>;
}

/** A route that the site has. Without `enabled`, its plugin is disabled and the route's `whenOff` answers. */
interface Offered {
  readonly mounted: Mounted;
  readonly enabled: Enabled | undefined;
}

/** What handles a request: the plugin, and what its route says of itself. */
interface Owner {
  readonly plugin: string;
  readonly setsId?: true | undefined;
  readonly forwards?: true | undefined;
}

/** A handler's input. The request is made when the handler reads it. */
class Input implements RouteInput {
  readonly params: RouteInput['params'];
  readonly body: unknown;
  readonly #call: Call;

  constructor(call: Call, params: RouteInput['params'], body: unknown) {
    this.#call = call;
    this.params = params;
    this.body = body;
  }

  get request(): Request {
    return this.#call.served();
  }

  header(name: string): string | null {
    return this.#call.header(name);
  }
}

/** Handles a path that matches a plugin's route; `undefined` where the site does not have that route. */
export function dispatch(call: Call, match: Match): Handling | undefined {
  const offered: Offered[] = [];
  for (const mounted of match.routes.values()) {
    const enabled = call.enabled.find(({ plugin }) => plugin === mounted.plugin);
    if (enabled !== undefined || mounted.route.whenOff !== undefined) offered.push({ mounted, enabled });
  }
  if (offered.length === 0) return undefined;
  const { request } = call;
  const cors = offered.some(({ mounted }) => mounted.route.cors);
  return {
    cors: cors ? allowedOrigin(request, call.site) : undefined,
    async handle() {
      const chosen = choose(request, offered);
      // An async function that returns a promise takes two more microtasks than one that awaits it.
      if (chosen !== undefined) return await answerRoute(call, chosen, match);
      const methods = methodsOf(offered);
      if (!cors) throw notAllowed(methods);
      if (request.method !== 'OPTIONS') throw notAllowed([...methods, 'OPTIONS']);
      return preflight(methods);
    },
  };
}

/** Handles a path that only the site's own documents name; `undefined` where no plugin owns it. */
export function dispatchDynamic(call: Call, path: string): Handling | undefined {
  return dispatchOwned(call, 'dynamic', (plugin, settings) =>
    plugin.dynamic?.owns(path, call.site, settings),
  );
}

/** Handles an address that one plugin owns under a prefix, even if a route matches it; `undefined` where none does. */
export function dispatchPrefixed(call: Call, path: string, query: string): Handling | undefined {
  const { request, site } = call;
  if (request.method !== 'GET' && request.method !== 'HEAD') return undefined;
  const handling = dispatchOwned(call, 'prefixed', ({ prefixed }, settings) =>
    prefixed?.owns({ path, query }, site, settings),
  );
  return handling && { handle: async () => answerConditional(request, await handling.handle()) };
}

/** Handles a request by the member `by` of the first plugin that owns the request's address. */
function dispatchOwned(
  call: Call,
  by: 'dynamic' | 'prefixed',
  owns: (plugin: Plugin, settings: unknown) => boolean | undefined,
): Handling | undefined {
  const owner = call.enabled.find(({ plugin, settings }) =>
    valueOr(plugin.name, () => owns(plugin, settings), false, call.guard.log),
  );
  const owned = owner?.plugin[by];
  if (!owner || !owned) return undefined;
  const run = (own: Call) => owned.handle(new Input(own, {}, undefined), own.contextOf(owner));
  const forwards = by === 'dynamic' ? owner.plugin.dynamic?.forwards : undefined;
  return { handle: () => withHooks(call, { plugin: owner.plugin.name, forwards }, run) };
}

function choose({ method }: Request, offered: readonly Offered[]): Offered | undefined {
  const served = method === 'HEAD' ? 'GET' : method;
  return (
    offered.find(({ mounted }) => mounted.route.method === served) ??
    offered.find(({ mounted }) => mounted.route.method === 'ALL')
  );
}

function methodsOf(offered: readonly Offered[]): string[] {
  return offered.flatMap(({ mounted: { route } }) =>
    route.method === 'GET' ? ['GET', 'HEAD'] : [route.method],
  );
}

function notAllowed(methods: readonly string[]): EdgeError {
  return new EdgeError('method_not_allowed', { headers: { allow: methods.join(', ') } });
}

async function answerRoute(call: Call, { mounted, enabled }: Offered, { params }: Match): Promise<Response> {
  const { plugin, route } = mounted;
  const { request } = call;
  const body = route.body === undefined ? undefined : await readJson(request, route.body);
  if (enabled === undefined) {
    if (route.whenOff === undefined) throw new EdgeError('not_found');
    return withOwnCookies(route.whenOff(), call.ownHosts, []);
  }
  const { setsId, forwards } = route;
  const response = await withHooks(call, { plugin: plugin.name, setsId, forwards }, (own) =>
    route.handle(new Input(own, params, body), own.contextOf(enabled)),
  );
  return route.conditional ? answerConditional(request, response) : response;
}

/**
 * Runs `before` in list order until one answers; if none does, runs the handler, with the request as they have changed
 * it. Then runs `after` in reverse order.
 * Removes cookies that the site may not set.
 */
async function withHooks(
  call: Call,
  { plugin, setsId, forwards }: Owner,
  handle: (call: Call) => Response | Promise<Response>,
): Promise<Response> {
  const { enabled, ownHosts, contextOf, guard } = call;
  const route = { forwards: forwards === true };
  let own = call;
  let response: Response | undefined;
  for (const each of enabled) {
    const { name, before, failsClosed } = each.plugin;
    if (before === undefined) continue;
    const kind = failsClosed && forwards ? 'mandatory' : each.plugin.kind;
    const request = own.served();
    const run = () => before(request, contextOf(each), route);
    const result = await guardHook({ name, kind }, run, (given) => answerOrRequest(given, request), guard);
    if (result instanceof Request) {
      own = { ...own, served: () => result, header: (header) => result.headers.get(header) };
    } else if (result !== undefined) {
      response = result;
      break;
    }
  }
  const { served } = own;
  const handled = response === undefined;
  response ??= await guardHandler(plugin, () => handle(own), guard);
  const id = handled && setsId ? idCookies(response) : [];
  for (const each of enabled.toReversed()) {
    const { after } = each.plugin;
    if (after === undefined) continue;
    // A copy, so that a hook that reads the body and then fails does not consume it.
    const copy: Response = response.clone();
    const next = await guardHook(
      each.plugin,
      () => after(copy, served(), contextOf(each)),
      responseOf,
      guard,
    );
    if (next === copy) response = copy;
    // Hooks often change the body and keep the headers, so the length is still that of the old body.
    else if (next !== undefined) response = withHeaders(next, (headers) => headers.delete('content-length'));
  }
  if (id.length === 0 && !response.headers.has('set-cookie')) return response;
  const final = withOwnCookies(response, ownHosts, id);
  if (!setsId) passCookies(own, final.headers.getSetCookie());
  return final;
}

/** Gives the plugins the cookies that an answer sets, in the background. */
function passCookies({ served, enabled, contextOf, guard }: Call, lines: readonly string[]): void {
  if (lines.length === 0) return;
  for (const each of enabled) {
    const { passedCookies } = each.plugin;
    if (passedCookies === undefined) continue;
    const context = contextOf(each);
    context.waitUntil(
      guardHook(
        each.plugin,
        () => passedCookies(lines, served(), context),
        () => undefined,
        guard,
      ),
    );
  }
}
