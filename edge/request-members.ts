import { type ConsentRules, modeOf } from '../plugins/consent.ts';
import type { PluginContext } from '../plugins/contract.ts';
import type { RegistryDomain } from '../plugins/document.ts';
import { decideConsent } from './consent.ts';
import type { Enabled } from './gate.ts';
import { type GuardDependencies, guardHook, jsonOf } from './guard.ts';
import { isUnder } from './http/public-url.ts';
import type { Notes } from './logs/request-record.ts';
import { type ResolvedSite, storeUnavailable } from './site.ts';
import type { ConfigStores } from './stores/config-store.ts';
import type { RequestScope } from './stores/document-store.ts';

/** The methods of a context that are the same for all plugins of a request. */
export type RequestMembers = Pick<
  PluginContext,
  'domainOf' | 'ownsLoader' | 'profileKeys' | 'consent' | 'bootstrap' | 'log' | 'waitUntil'
>;

export interface MemberRequest {
  readonly request: Request;
  readonly resolved: ResolvedSite;
  readonly scope: RequestScope;
  readonly guard: GuardDependencies;
  readonly notes: Notes;
}

interface MemberDependencies {
  readonly stores: ConfigStores;
  readonly rules: ConsentRules;
  readonly contextOf: (enabled: Enabled) => PluginContext;
}

const LOADER_TOKEN = /^lt_[A-Za-z0-9]{16,64}$/;

/** Made once per request, not per context: functions are most of a context's cost, and a bootstrap has two contexts. */
export function requestMembers(
  { request, resolved, scope, guard, notes }: MemberRequest,
  { stores, rules, contextOf }: MemberDependencies,
): RequestMembers {
  const { site } = resolved;
  return {
    domainOf: (host) => longestMatch(site.domains, host),
    async ownsLoader(token) {
      if (!LOADER_TOKEN.test(token)) return false;
      const lookup = await stores.loaderTokens.get(token, scope);
      if (lookup.state === 'unavailable') throw storeUnavailable();
      if (lookup.state === 'missing' || lookup.document.containerId !== site.containerId) return false;
      const { until } = lookup.document;
      return until === undefined || guard.now() < Date.parse(until);
    },
    async profileKeys(cookies) {
      const keys: string[] = [];
      for (const keeper of resolved.keepers) {
        const run = () => keeper.plugin.profileKey?.(cookies, contextOf(keeper));
        const key = await guardHook(keeper.plugin, run, keyOf, guard);
        if (key !== undefined) keys.push(key);
      }
      return keys;
    },
    consent: (choices) => decideConsent(modeOf(rules), request.headers.get('sec-gpc') === '1', choices),
    async bootstrap(draft) {
      const members: Record<string, unknown> = {};
      for (const enabled of resolved.enabled) {
        const { name, boot, bootMember = name } = enabled.plugin;
        if (boot === undefined) continue;
        const run = () => boot(contextOf(enabled), draft);
        const value = await guardHook(enabled.plugin, run, jsonOf, guard);
        if (value !== undefined) members[bootMember] = value;
      }
      return members;
    },
    log: (fields) => Object.assign(notes, fields),
    waitUntil: (work) =>
      scope.waitUntil(work.catch((error) => guard.log('background_failed', { error: String(error) }))),
  };
}

/** A derived key of the profile store; by its prefix, it can't be the same as a visitor's id. */
function keyOf(result: unknown): string {
  if (typeof result === 'string' && /^[a-z]+:[0-9a-f]{16,64}$/.test(result)) return result;
  throw new TypeError('not a key');
}

function longestMatch(domains: readonly RegistryDomain[], host: string): RegistryDomain | undefined {
  return domains
    .filter(({ domain }) => isUnder(host, domain))
    .toSorted((a, b) => b.domain.length - a.domain.length)[0];
}
