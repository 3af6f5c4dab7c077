/**
 * Why a Workers route pattern is refused in a zone, or `null`. Rules: `*` only at the start of the host and at the
 * end of the path, no port, no query, and the host lies in the zone (source: Workers documentation, "Routes").
 */
export function patternFault(pattern: string, zone: string): string | null {
  const bare = pattern.replace(/^https?:\/\//, '');
  const slash = bare.indexOf('/');
  const host = (slash === -1 ? bare : bare.slice(0, slash)).toLowerCase();
  const path = slash === -1 ? '' : bare.slice(slash);
  if (/[?#\s]/.test(pattern)) return 'A pattern has no query, fragment or blank.';
  if (path.slice(0, -1).includes('*')) return 'In a path, * stands at the end only.';
  const name = host.replace(/^\*\.?/, '');
  if (name.includes('*')) return 'In a host, * stands at the start only.';
  if (!/^[a-z0-9.-]+$/.test(name)) return 'The host of the pattern is invalid.';
  if (name !== zone && !name.endsWith(`.${zone}`)) return `The pattern must lie in the zone ${zone}.`;
  return null;
}
