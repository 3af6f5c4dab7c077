import { createReadStream, createWriteStream, rmSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { constants } from 'node:os';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { createGunzip, createGzip } from 'node:zlib';
import { Decrypter, Encrypter } from 'age-encryption';
import { extract, pack } from 'tar-stream';
import { syncDirectory, syncFile } from '../../../base/durable.ts';
import { identitiesIn } from '../../../sites/manifest/secrets.ts';
import { CliError } from '../output/cli-error.ts';

/** A file of a backup. */
interface Entry {
  readonly name: string;
  /** Permissions. */
  readonly mode: number;
  readonly content: Buffer;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

type Put = (name: string, content: Buffer | string, mode?: number) => Promise<void>;

/**
 * Writes a tar archive, packed by gzip and encrypted in age's binary form. `path` gets it as a whole, or nothing. Throws
 * `CliError`.
 */
export async function writeArchive<Result>(
  path: string,
  recipient: string,
  fill: (put: Put) => Promise<Result>,
): Promise<Result> {
  const encrypter = new Encrypter();
  encrypter.addRecipient(recipient);
  const draft = `${path}.part`;
  const archive = pack();
  const packed = archive.pipe(createGzip());
  archive.on('error', (error) => packed.destroy(error));
  const sealed = await encrypter.encrypt(Readable.toWeb(packed) as globalThis.ReadableStream<Uint8Array>);
  const interrupt = (signal: NodeJS.Signals) => {
    rmSync(draft, { force: true });
    process.exit(128 + constants.signals[signal]);
  };
  for (const signal of SIGNALS) process.on(signal, interrupt);
  const file = createWriteStream(draft, { mode: 0o600 });
  const written = pipeline(Readable.fromWeb(sealed as ReadableStream), file);
  const filled = fill((name, content, mode = 0o600) => put(archive, { name, mode }, content)).then(
    (result) => {
      archive.finalize();
      return result;
    },
  );
  try {
    // A disk that is full ends the writing, and so must end the filling.
    const [result] = await Promise.all([filled, written]);
    await syncFile(draft);
    await rename(draft, path);
    await syncDirectory(dirname(path));
    return result;
  } catch (cause) {
    const error = cause instanceof Error ? cause : new Error(String(cause));
    archive.destroy(error);
    // The database has one user at a time.
    await Promise.allSettled([filled, written]);
    await rm(draft, { force: true });
    throw error instanceof CliError
      ? error
      : new CliError(`${path} was not written: ${error.message}`, { cause });
  } finally {
    for (const signal of SIGNALS) process.off(signal, interrupt);
  }
}

/** Waits until the archive has taken the content, so that memory holds only one. */
async function put(
  archive: ReturnType<typeof pack>,
  header: { name: string; mode: number },
  content: Buffer | string,
): Promise<void> {
  const bytes = Buffer.from(content);
  await pipeline(Readable.from([bytes]), archive.entry({ ...header, size: bytes.length }));
}

/**
 * The files of an archive in order. Throws `CliError` for a wrong identity, and for a file that is truncated or altered: then
 * what came before must not be used.
 */
export async function* readArchive(path: string, keyFile: string): AsyncGenerator<Entry> {
  const decrypter = new Decrypter();
  for (const identity of identitiesIn(keyFile)) decrypter.addIdentity(identity);
  const sealed = Readable.toWeb(createReadStream(path)) as globalThis.ReadableStream<Uint8Array>;
  const opened = await decrypter.decrypt(sealed).catch((cause: unknown) => {
    throw refusal(path, cause);
  });
  const archive = extract();
  const read = pipeline(Readable.fromWeb(opened as ReadableStream), createGunzip(), archive);
  // The iteration below reports it.
  read.catch(() => undefined);
  try {
    for await (const content of archive) {
      const { name, mode = 0o600 } = content.header;
      yield { name, mode, content: await buffer(content) };
    }
    await read;
  } catch (cause) {
    throw refusal(path, cause);
  }
}

function refusal(path: string, cause: unknown): CliError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  if (/no identity matched/.test(reason)) {
    return new CliError(`${path} is encrypted to another identity`, { cause });
  }
  return new CliError(`${path} is damaged, truncated or no backup: ${reason}; nothing was restored`, {
    cause,
  });
}
