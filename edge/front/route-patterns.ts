/**
 * True where one of the Workers route patterns covers the address. Patterns follow Cloudflare's rules: an optional
 * scheme, `*` only at the start of the host and at the end of the path, no path means exactly `/`, the query is part
 * of what the path's pattern matches, hosts compare without case (developers.cloudflare.com/workers/configuration/routing/routes).
 */
export function matchRoute(patterns: readonly string[], url: URL): boolean {
  return patterns.some((pattern) => matches(pattern.replace(/^https?:\/\//, ''), url));
}

function matches(pattern: string, url: URL): boolean {
  const slash = pattern.indexOf('/');
  const host = (slash === -1 ? pattern : pattern.slice(0, slash)).toLowerCase();
  const path = slash === -1 ? '/' : pattern.slice(slash);
  const hostMatches = host.startsWith('*') ? url.hostname.endsWith(host.slice(1)) : url.hostname === host;
  const asked = url.pathname + url.search;
  return hostMatches && (path.endsWith('*') ? asked.startsWith(path.slice(0, -1)) : asked === path);
}
