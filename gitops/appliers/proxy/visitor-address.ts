import { BlockList, isIP } from 'node:net';
import { NO_TRUSTED_PEERS, type TrustedPeers } from './policy.ts';

export type VisitorOf = (
  peer: string,
  headers: { readonly [name: string]: string | string[] | undefined },
) => string;

/** Finds the visitor's address for a proxy in Node: stated by the peer if it is trusted, else the peer's own. */
export function visitorAddress(trusted: () => TrustedPeers): VisitorOf {
  let ranges = NO_TRUSTED_PEERS;
  let cloudflare = listOf([]);
  let own = listOf([]);
  return (peer, headers) => {
    const now = trusted();
    if (now.cloudflare !== ranges.cloudflare || now.own !== ranges.own) {
      ranges = now;
      cloudflare = listOf(now.cloudflare);
      own = listOf(now.own);
    }
    const stated = contains(cloudflare, peer)
      ? headers['cf-connecting-ip']
      : contains(own, peer)
        ? [headers['x-forwarded-for'] ?? ''].flat().join(',').split(',').at(-1)?.trim()
        : undefined;
    return typeof stated === 'string' && isIP(stated) !== 0 ? stated : peer;
  };
}

function listOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', length] = range.split('/');
    list.addSubnet(address, Number(length), isIP(address) === 6 ? 'ipv6' : 'ipv4');
  }
  return list;
}

function contains(list: BlockList, address: string): boolean {
  const family = isIP(address);
  return family !== 0 && list.check(address, family === 6 ? 'ipv6' : 'ipv4');
}
