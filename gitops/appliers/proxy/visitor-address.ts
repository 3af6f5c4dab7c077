import { BlockList, isIP } from 'node:net';
import { NO_TRUSTED_PEERS, type TrustedPeers } from './policy.ts';

/** The visitor's address, and the scheme that the visitor used; `null`: that of the connection. */
interface Visitor {
  readonly address: string;
  readonly scheme: 'http' | 'https' | null;
}

export type VisitorOf = (
  peer: string,
  headers: { readonly [name: string]: string | string[] | undefined },
) => Visitor;

/** Finds the visitor for a proxy in Node: stated by the peer if it is trusted, else the peer itself. */
export function visitorFinder(trusted: () => TrustedPeers): VisitorOf {
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
    const last = (name: string) => [headers[name] ?? ''].flat().join(',').split(',').at(-1)?.trim();
    const isCloudflare = contains(cloudflare, peer);
    if (!isCloudflare && !contains(own, peer)) return { address: peer, scheme: null };
    const stated = isCloudflare ? headers['cf-connecting-ip'] : last('x-forwarded-for');
    const scheme = last('x-forwarded-proto');
    return {
      address: typeof stated === 'string' && isIP(stated) !== 0 ? stated : peer,
      scheme: scheme === 'http' || scheme === 'https' ? scheme : null,
    };
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
