import { BlockList, isIP } from 'node:net';

/** As published on cloudflare.com/ips on 2026-09-29; used until the API has answered once. */
export const KNOWN_CLOUDFLARE_RANGES: readonly string[] = [
  '173.245.48.0/20',
  '103.21.244.0/22',
  '103.22.200.0/22',
  '103.31.4.0/22',
  '141.101.64.0/18',
  '108.162.192.0/18',
  '190.93.240.0/20',
  '188.114.96.0/20',
  '197.234.240.0/22',
  '198.41.128.0/17',
  '162.158.0.0/15',
  '104.16.0.0/13',
  '104.24.0.0/14',
  '172.64.0.0/13',
  '131.0.72.0/22',
  '2400:cb00::/32',
  '2606:4700::/32',
  '2803:f800::/32',
  '2405:b500::/32',
  '2405:8100::/32',
  '2a06:98c0::/29',
  '2c0f:f248::/32',
];

const cloudflare = new BlockList();
for (const range of KNOWN_CLOUDFLARE_RANGES) {
  const [network = '', bits] = range.split('/');
  cloudflare.addSubnet(network, Number(bits), familyOf(network));
}

/**
 * What to do about addresses of a name that aren't the host's, where a change of other records than the host's own is
 * what it needs: a proxy to switch off, or records to remove. `null`: the name simply leads elsewhere.
 */
export function foreignRemedy(foreign: readonly string[], own: readonly string[]): string | null {
  if (foreign.length === 0) return null;
  if (foreign.every((address) => cloudflare.check(address, familyOf(address)))) {
    return 'Cloudflare’s proxy answers there: set the record to “DNS only”';
  }
  if (own.length === 0) return null;
  const records = foreign.map((address) => `${isIP(address) === 6 ? 'AAAA' : 'A'} ${address}`);
  return `remove the left-over record ${records.join(', ')}`;
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}
