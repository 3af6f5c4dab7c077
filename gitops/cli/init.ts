import { randomBytes } from 'node:crypto';
import { chown, readdir, readFile, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { hostname } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { ExecaError, execa } from 'execa';
import { writeDurably } from '../../base/durable.ts';
import { readKeyFile } from './backup/key-file.ts';
import { checkInstallation } from './check.ts';
import { type Answers, answerAll, parseFlags, readAnswers } from './init/answers.ts';
import { managementEnv, provisionerEnv, rolesSql, type Secrets, sshServerOf } from './init/files.ts';
import { type Agreement, confirmation, placeFile, settingsAt, textOf } from './init/place.ts';
import { QUESTIONS } from './init/questions.ts';
import { setUpWorker } from './init/worker.ts';
import type { CliContext } from './instance/provisioner-client.ts';
import { CliError } from './output/cli-error.ts';

export interface InitOptions {
  readonly answers?: string;
  readonly set: readonly string[];
  /** Empty: the machine itself. */
  readonly root: string;
  readonly yes?: true;
}

/** Where the package has its files that are no code. */
const PACKAGE = dirname(createRequire(import.meta.url).resolve('tagyard/package.json'));

/**
 * Sets up a host. The files that it writes are its only memory: what they have is neither asked nor made again, so a second
 * run changes nothing, and one after an interruption goes on.
 */
export async function init(context: CliContext, options: InitOptions): Promise<void> {
  const root = options.root === '' ? '' : resolve(options.root);
  const etc = join(root, '/etc/tagyard');
  const [provisionerFile, managementFile] = ['provisioner', 'management'].map((name) =>
    join(etc, `${name}.env`),
  );
  if (provisionerFile === undefined || managementFile === undefined) return;
  const confirm = confirmation(options.yes === true);
  // A changed file stays without a person who has seen the difference, whatever else `--yes` agrees to.
  const replace = confirmation(false);

  // 1 Answers: flags, the file, what an earlier run wrote, then questions.
  const [before, known] = [await settingsAt(provisionerFile), await settingsAt(managementFile)];
  const { provisioner, management, ...inFile } = await readAnswers(options.answers);
  const answers: Answers = {
    given: await answerAll([parseFlags(options.set), inFile, earlier(before, known)]),
    provisioner: { ...changed(before), ...provisioner },
    management: { ...changed(known), ...management },
  };

  // 2 Keys and secrets, each made once.
  const recipient = await identityIn(join(etc, 'age-identity'));
  const recoveryRecipient = known.BACKUP_RECIPIENT ?? (await identityIn(join(etc, 'recovery-identity')));
  const secrets: Secrets = {
    recipient,
    recoveryRecipient,
    // What the answers have below a daemon's name counts for the other daemon and the worker, too.
    infra: answers.provisioner.INFRA_SECRET ?? answers.management.INFRA_SECRET ?? newSecret(),
    hop: answers.provisioner.HOP_SECRET ?? newSecret(),
    ingest: answers.management.INGEST_SECRET ?? newSecret(),
    forwarder: answers.management.FORWARDER_KEY ?? newSecret(),
    database: passwordOf(management.DATABASE_URL ?? known.DATABASE_URL) ?? newSecret(),
    owner: passwordOf(management.PORT_POOL_DATABASE_URL ?? known.PORT_POOL_DATABASE_URL) ?? newSecret(),
  };

  // 3 Files: settings, roles, units.
  const { TAG_SERVER_IMAGE: image = '' } = parseEnv(await readFile(join(PACKAGE, '.env.example'), 'utf8'));
  await placeFile(provisionerFile, provisionerEnv(answers, secrets, root), { replace });
  await placeFile(managementFile, managementEnv(answers, secrets, { root, image }), { replace });
  const roles = join(etc, 'database.sql');
  await placeFile(roles, rolesSql(answers, secrets), { replace });
  const units = join(PACKAGE, 'deploy/systemd');
  for (const name of await readdir(units)) {
    const unit = await readFile(join(units, name), 'utf8');
    await placeFile(join(root, '/etc/systemd/system', name), unit, { mode: 0o644, replace });
  }

  // 4 and 5 change what isn't below the root: the machine, the database, Cloudflare.
  if (root === '')
    await setUpServices(answers, { etc, provisionerFile, roles, secrets }, { confirm, replace });
  else process.stdout.write('Below another root, only files are written: nothing else is changed\n');

  // 6 What is to be done yet.
  if (await exists(join(etc, 'recovery-identity'))) {
    process.stdout.write(
      `Move ${join(etc, 'recovery-identity')} to a safe place outside of this machine: it opens backups\n`,
    );
  }
  await checkInstallation(context, { envFile: [provisionerFile, managementFile] });
}

/** The users of the units, the database's roles, and the worker with its stores. */
async function setUpServices(
  { given }: Answers,
  {
    etc,
    provisionerFile,
    roles,
    secrets,
  }: {
    readonly etc: string;
    readonly provisionerFile: string;
    readonly roles: string;
    readonly secrets: Secrets;
  },
  { confirm, replace }: { readonly confirm: Agreement; readonly replace: Agreement },
): Promise<void> {
  // 4 The machine: users of the units, who read their keys; roles of the database.
  await addUsers(join(etc, 'age-identity'), confirm);
  await addSshKeys(given.SITES_REPO);
  await addRoles(given.DATABASE_ADMIN_URL, roles, confirm);

  // 5 Cloudflare: the worker with its stores and secrets.
  const host = await settingsAt(provisionerFile);
  await setUpWorker({
    folder: PACKAGE,
    account: {
      url: host.CLOUDFLARE_API_URL ?? 'https://api.cloudflare.com/client/v4',
      token: host.CLOUDFLARE_API_TOKEN ?? '',
      accountId: host.CLOUDFLARE_ACCOUNT_ID ?? '',
    },
    script: host.EDGE_SCRIPT_NAME,
    secrets: { HOP_SECRET: secrets.hop, INGEST_SECRET: secrets.ingest },
    vars: given.PUBLIC_URL === '' ? {} : { INGEST_URL: new URL('/ingest', given.PUBLIC_URL).href },
    confirm,
    replace,
  }).catch((cause: Error) => {
    // The files are written: the check says more, and the next run goes on here.
    process.stdout.write(`The worker is not set up: ${cause.message}; run tagyard init again to go on\n`);
    process.exitCode = 1;
  });
}

type Settings = Readonly<Record<string, string | undefined>>;

/** The answers that the files of an earlier run have. */
function earlier(provisioner: Settings, management: Settings): Settings {
  const { DATABASE_URL: url, INFRA_SECRET: _, ...rest } = { ...management, ...provisioner };
  if (url === undefined) return rest;
  const { host, pathname } = new URL(url);
  // What a complete run left out was answered by nothing.
  return {
    DATABASE_ADMIN_URL: '',
    SUPER_ADMINS: '',
    PUBLIC_URL: '',
    ...rest,
    DATABASE: `${host}${pathname}`,
  };
}

/** What a file of settings has besides the answers; a person may have changed it. */
function changed(settings: Settings): Record<string, string> {
  const asked = new Set<string>([
    ...QUESTIONS.map(({ name }) => name),
    'DATABASE_URL',
    'PORT_POOL_DATABASE_URL',
  ]);
  const others = Object.entries(settings).filter(([name]) => !asked.has(name));
  return Object.fromEntries(others.map(([name, value = '']) => [name, value]));
}

function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

function passwordOf(url: string | undefined): string | undefined {
  return url === undefined ? undefined : decodeURIComponent(new URL(url).password) || undefined;
}

/** The recipient of the identity in this key file, which is made if it is missing. */
async function identityIn(path: string): Promise<string> {
  if (!(await exists(path)))
    await placeFile(path, `${await generateIdentity()}\n`, { replace: async () => false });
  // The first identity is the one that is encrypted to (`tagyard keys rotate age`).
  const [identity = ''] = (await readKeyFile(path))
    .split('\n')
    .filter((line) => line.startsWith('AGE-SECRET-KEY-'));
  return await identityToRecipient(identity);
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null;
}

/** The users that the units name. */
const USERS = { tagyard: '/var/lib/tagyard', 'tagyard-management': '/var/lib/tagyard-management' };

async function addUsers(identity: string, confirm: Agreement): Promise<void> {
  const passwd = (await textOf('/etc/passwd')) ?? '';
  const missing = Object.entries(USERS).filter(([user]) => !passwd.includes(`\n${user}:`));
  if (
    missing.length > 0 &&
    (await confirm(`Add the users ${missing.map(([user]) => user).join(' and ')}?`))
  ) {
    for (const [user, home] of missing) await run('useradd', ['--system', '--home-dir', home, user]);
  }
  const [, uid, gid] = /^tagyard:[^:]*:(\d+):(\d+):/m.exec((await textOf('/etc/passwd')) ?? '') ?? [];
  if (uid !== undefined) await chown(identity, Number(uid), Number(gid));
}

/** Keys of the units' users for a sites repository over SSH, and what its server's own keys are now. */
async function addSshKeys(repo: string): Promise<void> {
  const server = sshServerOf(repo);
  if (server === null) return;
  for (const [user, home] of Object.entries(USERS)) {
    const folder = join(home, '.ssh');
    const key = join(folder, 'id_ed25519');
    if (await exists(key)) continue;
    await run('install', ['-d', '-m', '700', '-o', user, '-g', user, home, folder]);
    const known = join(folder, 'known_hosts');
    await writeDurably(known, `${await run('ssh-keyscan', ['-p', server.port, server.host])}\n`, 0o644);
    // So that root, who checks the settings, connects as the daemon does.
    const command = `ssh -i ${key} -o IdentitiesOnly=yes -o UserKnownHostsFile=${known}`;
    await writeDurably(join(folder, 'git-config'), `[core]\n\tsshCommand = ${command}\n`, 0o644);
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', `${user}@${hostname()}`, '-f', key]);
    await run('chown', ['-R', `${user}:`, folder]);
    const marks = await run('ssh-keygen', ['-l', '-f', known]);
    process.stdout.write(
      `${user} takes these for the keys of ${server.host}; compare them:\n${marks}\nLet this key read and push to ${repo}:\n${await readFile(`${key}.pub`, 'utf8')}`,
    );
  }
}

async function addRoles(url: string, roles: string, confirm: Agreement): Promise<void> {
  if (url !== '' && (await confirm(`Make the database and its two roles (${roles})?`))) {
    // Everyone on the machine can read a program's arguments.
    const address = new URL(url);
    const password = decodeURIComponent(address.password);
    address.password = '';
    await run(
      'psql',
      ['--quiet', '--no-psqlrc', '--set', 'ON_ERROR_STOP=1', '--file', roles, '--dbname', address.href],
      password === '' ? {} : { PGPASSWORD: password },
    );
    process.stdout.write('The database and its roles are there\n');
    return;
  }
  process.stdout.write(
    `Database and roles, if they aren't there yet: psql --file ${roles}, as a superuser\n`,
  );
}

async function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<void> {
  try {
    await execa(program, args, { env });
  } catch (cause) {
    const reason = cause instanceof ExecaError ? cause.stderr || cause.originalMessage : String(cause);
    throw new CliError(`${program} failed: ${String(reason).trim()}; run tagyard init again to go on`, {
      cause,
    });
  }
}
