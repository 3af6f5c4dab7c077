import type { PluginContext, RouteInput, Site } from '../plugins/contract.ts';
import type { Enabled } from './gate.ts';
import { ask, type GuardDependencies, guardHandler, guardHook } from './guard.ts';
import { readJson } from './http/body.ts';
import { answerConditional } from './http/conditional.ts';
import { allowedOrigin, preflight } from './http/cors.ts';
import { EdgeError } from './http/errors.ts';
import type { Match, Mounted } from './router.ts';

/** One request at its site, ready for plugin code. */
export interface Call {
  readonly request: Request;
  readonly site: Site;
  /** The site's plugins, in list order. */
  readonly enabled: readonly Enabled[];
  readonly contextOf: (enabled: Enabled) => PluginContext;
  readonly guard: GuardDependencies;
  /** Notes that whatever is answered, an error too, is for pages of this origin to read; null where none asks. */
  readonly share: (origin: string | null) => void;
}

/** A route that the site has; without `enabled`, the site has turned its plugin off and the route says what that means. */
interface Offered {
  readonly mounted: Mounted;
  readonly enabled: Enabled | undefined;
}

/** Answers a request whose path is a literal route's; `undefined` where the site doesn't have it. */
export async function dispatch(call: Call, match: Match): Promise<Response | undefined> {
  const offered = [...match.routes.values()].flatMap((mounted): Offered[] => {
    const owner = call.enabled.find(({ plugin }) => plugin === mounted.plugin);
    return owner === undefined && mounted.route.whenOff === undefined ? [] : [{ mounted, enabled: owner }];
  });
  if (offered.length === 0) return undefined;
  const { request } = call;
  // Who may read is settled before anything is read or done.
  const shared = offered.some(({ mounted }) => mounted.route.cors);
  if (shared) call.share(allowedOrigin(request, call.site));
  const chosen = choose(request, offered);
  if (chosen !== undefined) return answer(call, chosen, match);
  const methods = methodsOf(offered);
  if (!shared) throw notAllowed(methods);
  if (request.method !== 'OPTIONS') throw notAllowed([...methods, 'OPTIONS']);
  return preflight(methods);
}

/** A path that only the site's own documents name; `undefined` where no plugin owns it. */
export async function dispatchDynamic(call: Call, pathname: string): Promise<Response | undefined> {
  const owner = call.enabled.find(({ plugin: { name, dynamic } }) =>
    ask(name, () => dynamic?.owns(pathname, call.site), false, call.guard.log),
  );
  const dynamic = owner?.plugin.dynamic;
  if (owner === undefined || dynamic === undefined) return undefined;
  const input = { request: call.request, params: {}, body: undefined };
  return withHooks(call, owner.plugin.name, () => dynamic.handle(input, call.contextOf(owner)));
}

function choose({ method }: Request, offered: readonly Offered[]): Offered | undefined {
  const wanted = method === 'HEAD' ? 'GET' : method;
  return (
    offered.find(({ mounted }) => mounted.route.method === wanted) ??
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

async function answer(call: Call, { mounted, enabled }: Offered, { params }: Match): Promise<Response> {
  const { plugin, route } = mounted;
  const { request } = call;
  const body = route.body === undefined ? undefined : await readJson(request, route.body);
  if (enabled === undefined) {
    if (route.whenOff === undefined) throw new EdgeError('not_found');
    return route.whenOff();
  }
  const input: RouteInput = { request, params, body };
  const response = await withHooks(call, plugin.name, () => route.handle(input, call.contextOf(enabled)));
  return route.conditional ? answerConditional(request, response) : response;
}

/** `before` down the list until one answers, else the handler; `after` up the list. */
async function withHooks(
  { request, enabled, contextOf, guard }: Call,
  plugin: string,
  handle: () => Response | Promise<Response>,
): Promise<Response> {
  let response: Response | undefined;
  for (const each of enabled) {
    const { before } = each.plugin;
    if (before === undefined) continue;
    response = await guardHook(each.plugin, () => before(request, contextOf(each)), guard);
    if (response !== undefined) break;
  }
  response ??= await guardHandler(plugin, handle, guard);
  for (const each of enabled.toReversed()) {
    const { after } = each.plugin;
    if (after === undefined) continue;
    // A copy, so that a hook which fails half-way hasn't used up the answer.
    const copy: Response = response.clone();
    const next = await guardHook(each.plugin, () => after(copy, request, contextOf(each)), guard);
    response = next ?? response;
  }
  return response;
}
