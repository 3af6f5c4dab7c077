import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { delimiter, join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { recipientsOf } from '../../../sites/manifest/secrets.ts';
import { CliError } from '../output/cli-error.ts';
import { readKeyFile } from './key-file.ts';

/** The settings of one daemon, or of both. */
export type SettingsOfDaemon = Readonly<Record<string, string | undefined>>;

/** What a backup has of a machine, besides the database's tables and the commits. */
export interface MachineParts {
  readonly files: readonly string[];
  /** A bare repository with all commits. */
  readonly repo: string;
  readonly branch: string;
  /** PostgreSQL's URL, or the folder of an embedded database; `null`: management doesn't run on this machine. */
  readonly database: string | null;
}

/** SettingsOfDaemon that name a file or folder. What can be downloaded again isn't among them. */
const NAMED = [
  'AGE_IDENTITY_FILE',
  'SITES_REPO_GIT_CONFIG',
  'SITES_REPO_PASSWORD_FILE',
  'SITES_SIGNING_KEY_FILE',
  'SITES_WEBHOOK_SECRET_FILE',
  'TLS_DIR',
  'LOCAL_CA_DIR',
  'ACME_CA_FILE',
  'ACME_EAB_HMAC_KEY_FILE',
  'CONTAINER_CA_FILE',
  'DNS_TSIG_SECRET_FILE',
];
/**
 * What can't be made again of a daemon's STATE_DIR: the id by which it holds its host's name, authorities that containers
 * trust, certificates with the account that ordered them, and SSH keys of its user.
 */
const KEPT = ['holder', 'inside', 'acme', 'tls', '.ssh'];

/** The instance of `npm start`. */
export async function embeddedMachine(home: string): Promise<MachineParts> {
  const database = join(home, 'management', 'pglite');
  const kept = KEPT.map((name) => join(home, 'provisioner', name));
  return {
    files: await filesUnder([join(home, 'instance.json'), join(home, 'ca'), ...kept]),
    repo: join(home, 'sites.git'),
    branch: 'main',
    database: existsSync(database) ? database : null,
  };
}

/** The daemons whose settings are in these files. Throws `CliError` where one of them is no part of the other. */
export async function hostMachine(paths: readonly string[]): Promise<MachineParts> {
  const daemons = await Promise.all(paths.map(settingsInFile));
  await demandPair(daemons);
  const named = daemons.flatMap((settings) => {
    const { STATE_DIR: state, KUBECONFIG: kubeconfigs = '' } = settings;
    return [
      ...NAMED.map((name) => settings[name]),
      ...kubeconfigs.split(delimiter),
      // The current folder may be a person's home with SSH keys of its own.
      ...(state ? KEPT.map((name) => join(state, name)) : []),
    ];
  });
  const given = named.filter((path) => path !== undefined && path !== '').map((path) => resolve(path ?? ''));
  // The database's commits are in management's mirror first.
  const of = daemons.find(isManagement) ?? daemons[0] ?? {};
  return {
    files: await filesUnder([...paths.map((path) => resolve(path)), ...given]),
    repo: repoOf(of),
    branch: of.SITES_BRANCH || 'main',
    database: databaseOf(daemons),
  };
}

export async function settingsInFile(path: string): Promise<SettingsOfDaemon> {
  const text = await readFile(path, 'utf8').catch((cause: Error) => {
    throw new CliError(
      `${path} can't be read: ${cause.message}; name the files of the daemons’ settings with --settings`,
      { cause },
    );
  });
  return parseEnv(text);
}

/** Management and provisioner of one machine must belong together: each is useless with another one's secrets. */
async function demandPair(daemons: readonly SettingsOfDaemon[]): Promise<void> {
  const values = (name: string) => daemons.flatMap((settings) => settings[name] || []);
  const secrets = new Set(values('INFRA_SECRET'));
  if (secrets.size > 1) throw new CliError('INFRA_SECRET differs between the files of settings');
  const [recipient] = values('AGE_RECIPIENT');
  const [file] = values('AGE_IDENTITY_FILE');
  if (recipient === undefined || file === undefined) return;
  if ((await recipientsOf(await readKeyFile(file))).includes(recipient)) return;
  throw new CliError(`AGE_RECIPIENT is of none of the identities in ${file}`);
}

/** The repository itself, or the daemon's mirror of it, which needs no network and no credentials. */
function repoOf({ SITES_REPO: url = '', STATE_DIR: state = '' }: SettingsOfDaemon): string {
  if (existsSync(join(url, 'HEAD'))) return resolve(url);
  if (state === '') {
    throw new CliError(
      'STATE_DIR isn’t set: set it to the folder in which the daemon has its copy of SITES_REPO',
    );
  }
  const mirror = join(resolve(state), 'sites.git');
  if (existsSync(mirror)) return mirror;
  throw new CliError(
    `${mirror} doesn't exist: start the daemon once, so that it fetches the sites repository`,
  );
}

function isManagement({ AUTH_JWKS_URL: url }: SettingsOfDaemon): boolean {
  return url !== undefined;
}

export function databaseOf(daemons: readonly SettingsOfDaemon[]): string | null {
  const management = daemons.find(isManagement);
  if (management === undefined) return null;
  const url = management.PORT_POOL_DATABASE_URL || management.DATABASE_URL;
  if (url) return url;
  throw new CliError(
    'DATABASE_URL isn’t set: an embedded database is backed up only with its whole instance',
  );
}

/** All files at or below these paths. Links count as what they lead to. */
async function filesUnder(paths: readonly string[]): Promise<string[]> {
  const found = await Promise.all(
    paths.map(async (path) => {
      const stats = await stat(path).catch(() => null);
      if (stats?.isFile()) return [path];
      if (!stats?.isDirectory()) return [];
      return await filesUnder((await readdir(path)).map((name) => join(path, name)));
    }),
  );
  return [...new Set(found.flat())];
}
