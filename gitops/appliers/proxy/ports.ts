import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { writeDurably } from '../../../base/durable.ts';
import { RetryableError } from '../../../base/errors.ts';
import { freePort } from '../../../base/free-port.ts';

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

/**
 * The port if it is free; `null` if it is in use. Throws `RetryableError` if the address can't be bound, because it may
 * exist later.
 */
async function bind(address: string, port: number): Promise<number | null> {
  try {
    return await freePort(address.replace(/^\[|\]$/g, ''), port);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new RetryableError(`the proxy can't use ${address}: ${reason}`, { cause });
  }
}
