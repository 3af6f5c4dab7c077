import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, chown, readFile, realpath, rename, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { z } from 'zod';
import { syncDirectory, writeDurably } from '../../base/durable.ts';
import { readKeyFile } from './backup/key-file.ts';
import { type SettingsOfDaemon, settingsInFile } from './backup/machine.ts';
import { Home } from './instance/home.ts';
import { type CliContext, callProvisioner } from './instance/provisioner-client.ts';
import { CliError } from './output/cli-error.ts';

export type Key = 'age' | 'infra' | 'hop';

export interface RotateOptions {
  /** The files with the settings of the daemons. */
  readonly settings?: readonly string[];
  /** The daemons have the new key: nothing shall need the old one any more. */
  readonly finish?: true;
}

/** A daemon's file of settings. */
interface SettingsFile {
  readonly path: string;
  readonly values: SettingsOfDaemon;
}

/**
 * Replaces a key in two steps, between which the daemons are restarted: the first one makes the new key, beside which the
 * old one stays valid.
 */
export async function rotate(
  context: CliContext,
  key: Key,
  { settings, finish }: RotateOptions,
): Promise<void> {
  if (key === 'age' && finish === true) return await encryptAnew(context);
  const home = new Home(context.home);
  if (settings === undefined && existsSync(home.at('instance.json'))) {
    return await rotateEmbedded(home, key, finish === true);
  }
  const files = await Promise.all(
    (settings ?? ['.env']).map(async (path) => ({ path, values: await settingsInFile(path) })),
  );
  if (key === 'age') await addIdentity(files);
  else await rotateSecret(key, files, finish === true);
}

/** All parts of an embedded instance get their keys at its start. */
async function rotateEmbedded(home: Home, key: Key, isEnd: boolean): Promise<void> {
  if (isEnd) {
    process.stdout.write(
      'There is nothing to finish: all parts of this instance get the new secret at its start.\n',
    );
    return;
  }
  const lock = home.lock();
  try {
    const instance = await home.instance();
    if (key === 'infra') await home.save({ ...instance, infraSecret: newSecret() });
    else if (key === 'hop') await home.save({ ...instance, hopSecret: newSecret() });
    else {
      const { keyFile: identity, recipient } = await withNewIdentity(instance.age.identity);
      await home.save({ ...instance, age: { identity, recipient } });
    }
  } finally {
    lock.release();
  }
  const then = key === 'age' ? ', then run tagyard keys rotate age --finish' : '';
  process.stdout.write(`The new key is in ${home.at('instance.json')}. Start the instance${then}.\n`);
}

async function addIdentity(files: readonly SettingsFile[]): Promise<void> {
  const path = files.map(({ values }) => values.AGE_IDENTITY_FILE).find((one) => one !== undefined);
  if (path === undefined) throw new CliError('AGE_IDENTITY_FILE is in none of the files of settings');
  const { keyFile, recipient } = await withNewIdentity(await readKeyFile(path));
  await replaceText(path, keyFile);
  for (const { path: file } of files.filter(({ values }) => values.AGE_RECIPIENT !== undefined)) {
    await setIn(file, { AGE_RECIPIENT: recipient });
  }
  process.stdout.write(
    `${path} has a new identity, ${recipient}. Restart the provisioner; set AGE_RECIPIENT to it for management wherever it isn't yet, and restart it; then run tagyard keys rotate age --finish.\n`,
  );
}

/** The first identity is the one that is encrypted to. */
async function withNewIdentity(keyFile: string): Promise<{ keyFile: string; recipient: string }> {
  const identity = await generateIdentity();
  return { keyFile: `${identity}\n${keyFile.trim()}\n`, recipient: await identityToRecipient(identity) };
}

const rotated = z.object({
  recipient: z.string(),
  rotated: z.array(z.string()),
  failed: z.array(z.object({ site: z.string(), reason: z.string() })),
});

/** Commits each manifest with its secrets encrypted to the newest identity. */
async function encryptAnew(context: CliContext): Promise<void> {
  const answer = rotated.parse(await callProvisioner(context, { method: 'POST', path: '/keys/age' }));
  const { recipient, failed } = answer;
  process.stdout.write(`${answer.rotated.length} sites are encrypted anew, to ${recipient}\n`);
  if (failed.length > 0) {
    const lines = failed.map(({ site, reason }) => `\n  ${site}: ${reason}`).join('');
    throw new CliError(`these sites are as before:${lines}`);
  }
  process.stdout.write('Only reverts to older commits need the older identities now.\n');
}

/** A secret that two sides have, the name of its setting, and what is to be done after each step. */
const SHARED = {
  infra: {
    name: 'INFRA_SECRET',
    next: 'Restart the provisioner, then management; then run tagyard keys rotate infra --finish.',
    end: 'Restart the provisioner: then it refuses the old secret.',
  },
  hop: {
    name: 'HOP_SECRET',
    next: 'Put the new HOP_SECRET to the edge as HOP_SECRET_PREVIOUS, and to the other hosts’ settings; restart the provisioners; put it to the edge and the verification worker as HOP_SECRET; a minute later, run tagyard keys rotate hop --finish.',
    end: 'Delete HOP_SECRET_PREVIOUS at the edge, and restart the provisioner: then the old secret counts nowhere.',
  },
} as const;

async function rotateSecret(
  key: keyof typeof SHARED,
  given: readonly SettingsFile[],
  isEnd: boolean,
): Promise<void> {
  const { name, next, end } = SHARED[key];
  const isProvisioner = ({ values }: SettingsFile) => values.AGE_IDENTITY_FILE !== undefined;
  // The hop secret is none of management's.
  const files = key === 'hop' ? given.filter(isProvisioner) : given;
  const without = files.find(({ values }) => !values[name]);
  if (without !== undefined) throw new CliError(`${without.path} has no ${name}`);
  if (!files.some(isProvisioner)) {
    throw new CliError(
      'none of the files of settings is the provisioner’s (AGE_IDENTITY_FILE), which alone knows two secrets: run this on its machine',
    );
  }
  if (isEnd) {
    if (new Set(files.map(({ values }) => values[name])).size > 1) {
      throw new CliError(
        `${name} differs between the files of settings: run tagyard keys rotate ${key} without --finish first`,
      );
    }
    for (const { path } of files.filter(isProvisioner)) await setIn(path, { [`${name}_PREVIOUS`]: '' });
    process.stdout.write(`${end}\n`);
    return;
  }
  // The daemons that run know the previous secret: a further new one would shut them out.
  const started = files.find(({ values }) => values[`${name}_PREVIOUS`])?.values;
  const secret = started?.[name] ?? newSecret();
  // The provisioner's first: an interruption after it leaves two that understand each other.
  for (const file of files.toSorted((a, b) => Number(isProvisioner(b)) - Number(isProvisioner(a)))) {
    const old = file.values[name];
    if (old === secret) continue;
    const previous = isProvisioner(file) ? { [`${name}_PREVIOUS`]: old } : {};
    await setIn(file.path, { [name]: secret, ...previous });
  }
  process.stdout.write(
    `${started === undefined ? '' : 'A rotation that isn’t finished goes on with its secret. '}${next}\n`,
  );
}

async function setIn(path: string, values: SettingsOfDaemon): Promise<void> {
  const text = Object.entries(values).reduce(
    (changed, [name, value = '']) => withSetting(changed, name, value),
    await readFile(path, 'utf8'),
  );
  await replaceText(path, text);
}

/** Replaces the lines of the setting, or appends one. */
function withSetting(text: string, name: string, value: string): string {
  const line = `${name}=${value}`;
  const pattern = new RegExp(`^(?:export )?${name}=.*$`, 'gm');
  return pattern.test(text) ? text.replace(pattern, () => line) : `${text.trimEnd()}\n${line}\n`;
}

/** Keeps a link, and owner and permissions from the first moment, because the daemon's user is another one. */
async function replaceText(path: string, text: string): Promise<void> {
  const file = await realpath(path);
  const { mode, uid, gid } = await stat(file);
  const draft = `${file}.new`;
  await writeDurably(draft, text);
  await chown(draft, uid, gid);
  await chmod(draft, mode & 0o777);
  await rename(draft, file);
  await syncDirectory(dirname(file));
}

function newSecret(): string {
  return randomBytes(24).toString('base64url');
}
