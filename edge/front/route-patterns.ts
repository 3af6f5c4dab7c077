/**
 * True where one of the Workers route patterns matches the URL. The rules are Cloudflare's, except that a pattern's
 * scheme is ignored. `*` is allowed at the start of the host and at the end of the path; no path means `/`; the path's
 * pattern also covers the query; hosts compare case-insensitively
 * (developers.cloudflare.com/workers/configuration/routing/routes).
 */
export function matchRoute(patterns: readonly string[], url: URL): boolean {
  return patterns.some((pattern) => matches(pattern.replace(/^https?:\/\//, ''), url));
}

/**
 * True where the most specific route that matches the URL leads to the worker. `elsewhere`: the patterns of routes without
 * a script or with another one.
 */
export function leadsToWorker(patterns: readonly string[], elsewhere: readonly string[], url: URL): boolean {
  const best = (some: readonly string[]) =>
    Math.max(-1, ...some.flatMap((pattern) => (matchRoute([pattern], url) ? specificity(pattern) : [])));
  return best(patterns) > best(elsewhere);
}

/** The host counts before the path: a single host before any wildcard, longer texts before shorter ones. */
function specificity(pattern: string): number {
  const bare = pattern.replace(/^https?:\/\//, '');
  const [host = '', ...path] = bare.split('/');
  const ofHost = (host.startsWith('*') ? 0 : 1_000) + host.length;
  return (ofHost * 10_000 + path.join('/').length) * 2 + (bare === pattern ? 0 : 1);
}

function matches(pattern: string, url: URL): boolean {
  const slash = pattern.indexOf('/');
  const host = (slash === -1 ? pattern : pattern.slice(0, slash)).toLowerCase();
  const path = slash === -1 ? '/' : pattern.slice(slash);
  const hostMatches = host.startsWith('*') ? url.hostname.endsWith(host.slice(1)) : url.hostname === host;
  const target = url.pathname + url.search;
  return hostMatches && (path.endsWith('*') ? target.startsWith(path.slice(0, -1)) : target === path);
}
