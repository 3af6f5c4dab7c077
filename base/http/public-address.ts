import { BlockList, isIP } from 'node:net';

/** IANA's special-purpose addresses, multicast, and Azure's platform address (WireServer), which is a public one. */
const REFUSED_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
];
/** Of IPv6, only global unicast is accepted, without the ranges for protocols, documentation, and tunnels to IPv4. */
const GLOBAL_IPV6 = ['2000::/3'];
const REFUSED_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'];

const refusedIpv4 = listOf('ipv4', REFUSED_IPV4);
const globalIpv6 = listOf('ipv6', GLOBAL_IPV6);
const refusedIpv6 = listOf('ipv6', REFUSED_IPV6);
function listOf(family: 'ipv4' | 'ipv6', ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [network = '', bits] = range.split('/');
    list.addSubnet(network, Number(bits), family);
  }
  return list;
}

/** Whether an address is one of the internet's: no name, no special-purpose, private or link-local address. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 0) return false;
  if (family === 4) return !refusedIpv4.check(address, 'ipv4');
  return globalIpv6.check(address, 'ipv6') && !refusedIpv6.check(address, 'ipv6');
}
