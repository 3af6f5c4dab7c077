import type { NameAnswer } from './contract.ts';

/** Two addresses are in one network if this many leading bits are equal. */
const IPV4_BITS = 16;
const IPV6_BITS = 64;

type Names = Pick<NameAnswer, 'name' | 'addresses' | 'alias' | 'registrable' | 'aliasRegistrable'>;

/**
 * Why Safari limits the cookies that `tag` sets for pages of `page` to 7 days; `null`: it does not. A host of another
 * site can't set cookies; a script writes them, so they last 7 days. For a same-site host Safari assumes cloaking
 * (WebKit, NetworkTaskCocoa) in two cases. Its CNAME leads to another registrable domain, and the page's host has no
 * CNAME to the same target. Or it has no CNAME, and its address is outside the page's network. With an allowed
 * CNAME, the address does not matter.
 */
export function safariVerdict(page: Names, tag: Names): string | null {
  if (tag.name === page.name) return null;
  if (tag.registrable === null || tag.registrable !== page.registrable) {
    return `${tag.name} is not part of ${page.registrable ?? page.name}, so only scripts can write its cookies`;
  }
  if (tag.alias !== null) {
    const matches = tag.aliasRegistrable === page.registrable || tag.alias === page.alias;
    return matches
      ? null
      : `${tag.name} is a CNAME to ${tag.alias}, which is not part of ${page.registrable}`;
  }
  if (tag.addresses.length === 0) return `${tag.name} doesn’t resolve`;
  return addressReason(page, tag);
}

/** Both must have the same address families: a visitor prefers IPv6 where it exists, and families have no common prefix. */
function addressReason(page: Names, tag: Names): string | null {
  const [pageFour, pageSix] = families(page.addresses);
  const [tagFour, tagSix] = families(tag.addresses);
  if (pageSix.length > 0 !== tagSix.length > 0 || pageFour.length > 0 !== tagFour.length > 0) {
    return `${tag.name} and ${page.name} don’t have the same kinds of addresses (IPv4, IPv6)`;
  }
  for (const [bits, ours, theirs] of [
    [IPV4_BITS, tagFour, pageFour],
    [IPV6_BITS, tagSix, pageSix],
  ] as const) {
    for (const one of ours) {
      const distant = theirs.find((other) => sharedBits(one, other) < bits);
      if (distant !== undefined) {
        return `${tag.name} (${one}) is in another network than ${page.name} (${distant}): fewer than ${bits} leading bits are the same`;
      }
    }
  }
  return null;
}

function families(addresses: readonly string[]): [four: string[], six: string[]] {
  return [addresses.filter((one) => !one.includes(':')), addresses.filter((one) => one.includes(':'))];
}

function sharedBits(one: string, other: string): number {
  const [a, b] = [bitsOf(one), bitsOf(other)];
  let shared = 0;
  while (shared < a.length && a[shared] === b[shared]) shared += 1;
  return shared;
}

/** An address as a text of 0 and 1. */
function bitsOf(address: string): string {
  if (!address.includes(':')) {
    return address
      .split('.')
      .map((octet) => Number(octet).toString(2).padStart(8, '0'))
      .join('');
  }
  // The URL parser writes an embedded IPv4 address as groups.
  const canonical = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  const [head = '', tail] = canonical.split('::');
  const groups = (text: string | undefined) => (text ? text.split(':') : []);
  const missing = 8 - groups(head).length - groups(tail).length;
  const all =
    tail === undefined ? groups(head) : [...groups(head), ...Array(missing).fill('0'), ...groups(tail)];
  return all.map((group: string) => Number.parseInt(group, 16).toString(2).padStart(16, '0')).join('');
}
