import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { z } from 'zod';
import { writeDurably } from '../../base/durable.ts';
import { RetryableError } from '../../base/errors.ts';

const remembered = z.record(z.string(), z.int().min(1).max(65535));
const TRIES = 50;

/**
 * Returns `wanted` with every 0 replaced by a port that is free on all `addresses`. It picks a port once and then reads
 * it from `file`, because clients know the addresses with that port.
 */
export async function assignProxyPorts<Name extends string>(
  file: string,
  addresses: readonly string[],
  wanted: Readonly<Record<Name, number>>,
): Promise<Record<Name, number>> {
  const known = await recall(file);
  const settled: Record<string, number> = {};
  for (const [name, port] of Object.entries<number>(wanted)) {
    const taken = Object.values(settled);
    settled[name] = port !== 0 ? port : (known[name] ?? (await pickPort(addresses, taken)));
  }
  await writeDurably(file, `${JSON.stringify({ ...known, ...settled })}\n`);
  return settled as Record<Name, number>; // every name of `wanted` was visited
}

async function recall(file: string): Promise<Record<string, number>> {
  const text = await readFile(file, 'utf8').catch(() => '{}');
  try {
    return remembered.parse(JSON.parse(text));
  } catch {
    return {};
  }
}

async function pickPort(addresses: readonly string[], taken: readonly number[]): Promise<number> {
  const [first = '127.0.0.1', ...others] = addresses;
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const port = await bind(first, 0);
    if (port === null || taken.includes(port)) continue;
    const free = await Promise.all(others.map((address) => bind(address, port)));
    if (!free.includes(null)) return port;
  }
  throw new RetryableError(`no port is free on all of ${addresses.join(', ')}`);
}

/** Binds a port and closes it again. Returns the port, or `null` if it is in use. */
function bind(host: string, port: number): Promise<number | null> {
  const { promise, resolve } = Promise.withResolvers<number | null>();
  const server = createServer();
  server.once('error', () => resolve(null));
  server.listen({ host: host.replace(/^\[|\]$/g, ''), port }, () => {
    const address = server.address();
    server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : null));
  });
  return promise;
}
