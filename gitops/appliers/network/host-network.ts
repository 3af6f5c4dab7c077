import { readFile } from 'node:fs/promises';
import { isIPv4 } from 'node:net';
import { parseRange, type Range } from './ranges.ts';

/** systemd-resolved lists the real servers here while `/etc/resolv.conf` has only its own loopback address. */
const RESOLVER_FILES = ['/etc/resolv.conf', '/run/systemd/resolve/resolv.conf'];

/**
 * The nameservers that containers use: Docker's resolver in a container asks those of the host, from the container's
 * network. It asks a loopback one from the host's network, which needs no exception.
 */
export async function hostNameservers(files: readonly string[] = RESOLVER_FILES): Promise<string[]> {
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => '')));
  const addresses = texts.flatMap((text) =>
    text.split('\n').flatMap((line) => /^\s*nameserver\s+(\S+)/.exec(line)?.[1] ?? []),
  );
  return [...new Set(addresses)].filter((address) => isIPv4(address) && !address.startsWith('127.'));
}

/** The destinations that this host routes elsewhere than to its default gateway (proc(5), `/proc/net/route`). */
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
