import { ApiError } from '../../../sites/local/cloudflare/api/envelope.ts';

/** The groups of permissions that a token needs for paths with these beginnings, as Cloudflare's dashboard names them. */
const GROUPS: readonly (readonly [prefix: string, group: string])[] = [
  ['/accounts/:account_id/storage/kv/', 'Workers KV Storage'],
  ['/accounts/:account_id/workers/', 'Workers Scripts'],
  ['/zones/:zone_id/workers/', 'Workers Routes'],
  ['/zones/:zone_id/dns_records', 'DNS'],
  ['/zones/:zone_id/settings/', 'Zone Settings'],
];

/** Refuses a call for which the token has no permission, as the API does. `path`: as it is declared. */
export function checkPermission(path: string, lacking: readonly string[]): void {
  const group = GROUPS.find(([prefix]) => path.startsWith(prefix))?.[1];
  if (group !== undefined && lacking.includes(group)) {
    throw new ApiError('lacksPermission', 'Authentication error');
  }
}
