import { existsSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { generateIdentity } from 'age-encryption';
import { writeDurably } from '../../base/durable.ts';
import { RELEASE } from '../../base/release.ts';
import { recipientsOf, testRecipient } from '../../sites/manifest/secrets.ts';
import { bundleOf, tipOf } from '../../sites/repo/bundle.ts';
import { ABOUT, type About, BUNDLE, FILES, TABLES, type VersionOfCopy } from './backup/about.ts';
import { writeArchive } from './backup/archive.ts';
import { readDatabase } from './backup/database.ts';
import { readKeyFile } from './backup/key-file.ts';
import { embeddedMachine, hostMachine, type MachineParts } from './backup/machine.ts';
import { Home } from './instance/home.ts';
import type { CliContext } from './instance/provisioner-client.ts';
import { CliError } from './output/cli-error.ts';

export interface BackupOptions {
  readonly recipient?: string;
  /** Files with the settings of this machine's daemons. */
  readonly settings?: readonly string[];
}

/** Writes all that this machine would need again into one encrypted file. */
export async function backup(
  { home: path, env }: CliContext,
  file: string,
  options: BackupOptions,
): Promise<void> {
  if (existsSync(file)) throw new CliError(`${resolve(file)} exists already; name a new file`);
  const home = new Home(path);
  const isEmbedded = options.settings === undefined && existsSync(home.at('instance.json'));
  const settings = isEmbedded ? [] : (options.settings ?? ['.env']).map((name) => resolve(name));
  // The embedded database has one user at a time.
  const lock = isEmbedded ? home.lock() : null;
  try {
    const machine = isEmbedded ? await embeddedMachine(path) : await hostMachine(settings);
    const recipient = await recipientOf(options.recipient ?? env.BACKUP_RECIPIENT, isEmbedded ? path : null);
    const root = isEmbedded ? path : '/';
    const made = await writeArchive(resolve(file), recipient, async (put) => {
      // Before the commits: what the database knows of must be among them.
      const database = await putDatabase(machine.database, put);
      const revision = await tipOf(machine.repo, machine.branch);
      const bundle = await bundleOf(machine.repo);
      if (bundle !== null) await put(BUNDLE, bundle);
      for (const one of machine.files) {
        const { mode } = await stat(one);
        await put(`${FILES}${relative(root, one)}`, await readFile(one), mode & 0o777);
      }
      const at = new Date().toISOString();
      const about: About = { version: 1, release: RELEASE, at, isEmbedded, settings, database, revision };
      await put(ABOUT, JSON.stringify(about));
      return about;
    });
    process.stdout.write(`${described(made, machine)} → ${file}, encrypted to ${recipient}\n`);
  } finally {
    lock?.release();
  }
}

async function putDatabase(
  database: string | null,
  put: (name: string, content: string) => Promise<void>,
): Promise<VersionOfCopy | null> {
  if (database === null) return null;
  let batch = 0;
  return await readDatabase(database, async (rows) => {
    batch += 1;
    await put(`${TABLES}${batch}`, rows);
  });
}

/** The recipient that was named, or the embedded instance's own. Its identity lies beside the home, which may be lost. */
async function recipientOf(named: string | undefined, home: string | null): Promise<string> {
  if (named !== undefined) {
    await testRecipient(named).catch((cause: Error) => {
      throw new CliError(`the recipient ${named}: ${cause.message}`, { cause });
    });
    return named;
  }
  if (home === null) throw new CliError('name an age recipient with --recipient, or set BACKUP_RECIPIENT');
  const file = `${home}-backup-identity`;
  if (!existsSync(file)) await writeDurably(file, `${await generateIdentity()}\n`);
  const [recipient = ''] = await recipientsOf(await readKeyFile(file));
  process.stdout.write(
    `The identity that opens this backup is in ${file}: keep a copy of that file on another machine.\n`,
  );
  return recipient;
}

function described({ database, revision }: About, { files }: MachineParts): string {
  const parts = [
    database === null ? 'no database' : `database ${database.migration}`,
    `commits up to ${revision?.slice(0, 8) ?? 'none'}`,
    `${files.length} files`,
  ];
  return parts.join(', ');
}
