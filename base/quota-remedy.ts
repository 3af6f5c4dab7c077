const REMEDIES = {
  worker_routes: {
    site: 'Set EDGE_ROUTE_MODE=wildcard (one route for all sites), delete routes, or have Cloudflare raise the limit.',
    wildcard: 'Delete routes, or have Cloudflare raise the limit.',
  },
  dns_records: {
    site: 'Set DNS_RECORD_MODE=wildcard (fewer records a site), delete records, or move the zone to a larger plan.',
    wildcard: 'Delete records, or move the zone to a larger plan.',
  },
} as const;

/**
 * What an operator can do before or after a quota of Cloudflare is reached. `mode`: `site` only where a wildcard would
 * replace the routes or records of single sites.
 */
export function quotaRemedy(name: keyof typeof REMEDIES, mode: 'site' | 'wildcard'): string {
  return REMEDIES[name][mode];
}
