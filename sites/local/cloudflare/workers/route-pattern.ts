/**
 * Why a zone rejects a Workers route pattern, or `null`. A `*` may be only at the start of the host and at the end of
 * the path. Ports and queries are not allowed. The host must be in the zone (source: Workers documentation, "Routes").
 */
export function patternFault(pattern: string, zone: string): string | null {
  const bare = pattern.replace(/^https?:\/\//, '');
  const slash = bare.indexOf('/');
  const host = (slash === -1 ? bare : bare.slice(0, slash)).toLowerCase();
  const path = slash === -1 ? '' : bare.slice(slash);
  if (/[?#\s]/.test(pattern)) return 'A pattern must not contain a query, a fragment or white space.';
  if (path.slice(0, -1).includes('*')) return 'In a path, * is allowed at the end only.';
  const name = host.replace(/^\*\.?/, '');
  if (name.includes('*')) return 'In a host, * is allowed at the start only.';
  if (!/^[a-z0-9.-]+$/.test(name)) return 'The host of the pattern is invalid.';
  if (name !== zone && !name.endsWith(`.${zone}`)) return `The host must be in the zone ${zone}.`;
  return null;
}
