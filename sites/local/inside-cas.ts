import { hash, randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { derivedKey } from '../../base/derived-key.ts';
import { writeDurably } from '../../base/durable.ts';
import { fileStem } from '../../base/file-stem.ts';
import { ensureLocalCa, type LocalCa } from './local-ca.ts';

/** Containers keep the CA until they are replaced. */
const LIFE = { caDays: 7300, leafDays: 3650 };
/** Milliseconds after which a name that isn't served counts as removed: a new name isn't served yet. */
const ABSENT_MS = 86_400_000;

/**
 * The certificate authorities of the names in the sites' networks. Each name has an authority of its own, which can
 * sign for no other name, because containers trust it for every connection.
 */
interface InsideCas extends Omit<LocalCa, 'caFile'> {
  /** Changes if the authorities are replaced by ones with other keys: running containers still trust the old ones. */
  readonly id: string;
  /** The PEM file of a name's CA, which is created at the first call. */
  caFileOf(name: string): Promise<string>;
}

interface InsideCasOptions {
  readonly now?: () => Date;
  /** The keys are derived from it, so that authorities that are lost are made again. Default: they aren't. */
  readonly secret?: string;
}

export async function openInsideCas(
  directory: string,
  { now = () => new Date(), secret = randomBytes(32).toString('hex') }: InsideCasOptions = {},
): Promise<InsideCas> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const id = await ensureId(join(directory, 'id'), secret);
  const opened = new Map<string, Promise<LocalCa>>();
  const absentSince = new Map<string, number>();
  const keyOf = (name: string) => derivedKey(secret, `CA inside ${name}`);
  const caOf = (name: string): Promise<LocalCa> => {
    const stem = fileStem(name);
    const ca =
      opened.get(stem) ??
      ensureLocalCa(join(directory, stem), { now, ...LIFE, onlyName: name, key: keyOf(name) });
    opened.set(stem, ca);
    ca.catch(() => opened.delete(stem));
    return ca;
  };
  return {
    id,
    caFileOf: async (name) => (await caOf(name)).caFile,
    pathsFor: async (host) => await (await caOf(host)).pathsFor(host),
    async retain(served) {
      const kept = new Set(served.map(({ host }) => fileStem(host)));
      const time = now().getTime();
      for (const entry of await readdir(directory, { withFileTypes: true })) {
        const { name } = entry;
        if (!entry.isDirectory() || kept.has(name)) {
          absentSince.delete(name);
          continue;
        }
        const since = absentSince.get(name) ?? time;
        absentSince.set(name, since);
        if (time - since < ABSENT_MS) continue;
        opened.delete(name);
        absentSince.delete(name);
        await rm(join(directory, name), { recursive: true, force: true });
      }
    },
  };
}

async function ensureId(file: string, secret: string): Promise<string> {
  const present = await readFile(file, 'utf8').catch(() => '');
  if (/^[0-9a-f]{16}$/.test(present)) return present;
  const id = hash('sha256', derivedKey(secret, 'CAs inside')).slice(0, 16);
  await writeDurably(file, id);
  return id;
}
