import { readFile } from 'node:fs/promises';
import { isIPv4 } from 'node:net';
import { parseRange, type Range } from './ranges.ts';

/** With systemd-resolved, the first file has only a loopback address, and the second one lists the real servers. */
const RESOLVER_FILES = ['/etc/resolv.conf', '/run/systemd/resolve/resolv.conf'];

/**
 * IPv4 addresses of the nameservers that containers use. Docker's resolver asks the host's nameservers from the
 * container's network. It asks a loopback nameserver from the host's network, so the firewall needs no rule for it.
 */
export async function hostNameservers(files: readonly string[] = RESOLVER_FILES): Promise<string[]> {
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => '')));
  const addresses = texts.flatMap((text) =>
    text.split('\n').flatMap((line) => /^\s*nameserver\s+(\S+)/.exec(line)?.[1] ?? []),
  );
  return [...new Set(addresses)].filter((address) => isIPv4(address) && !address.startsWith('127.'));
}

/** The IPv4 ranges for which this host has routes, without the default route (proc(5), `/proc/net/route`). */
export async function hostRoutes(): Promise<Range[]> {
  const [, ...lines] = (await readFile('/proc/net/route', 'utf8')).trim().split('\n');
  return lines.flatMap((line) => {
    const [, destination = '', , , , , , mask = ''] = line.split('\t');
    const bits = [...Number.parseInt(mask, 16).toString(2)].filter((bit) => bit === '1').length;
    const range = parseRange(`${addressOf(destination)}/${bits}`);
    return range === null || range.bits === 0 ? [] : [range];
  });
}

/** `0100A8C0` is 192.168.0.1: the table has little-endian numbers. */
function addressOf(hex: string): string {
  const octets = hex.match(/../g) ?? [];
  return octets
    .toReversed()
    .map((octet) => Number.parseInt(octet, 16))
    .join('.');
}
