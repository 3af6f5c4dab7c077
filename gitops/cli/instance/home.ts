import { randomBytes, randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { writeDurably } from '../../../base/durable.ts';
import { acquireLock, LockHeldError } from '../../../base/lock.ts';
import { CliError } from '../output/cli-error.ts';

/** The instance's identity and secrets, created at its first start. Only the owner can read the file. */
const instanceSchema = z.object({
  version: z.literal(1),
  /** Part of every ownership mark, so that instances on one machine never change each other's objects. */
  instance: z.string(),
  /** The first two octets of this instance's addresses in 127.0.0.0/8. */
  loopbackSubnet: z.string(),
  infraSecret: z.string(),
  hopSecret: z.string(),
  /** The secret of the verification worker. It has a default, because older homes lack it. */
  verificationSecret: z.string().default(newSecret),
  /** The secret by which management recognizes the edge's deliveries. It has a default, because older homes lack it. */
  ingestSecret: z.string().default(newSecret),
  /** The key of forwarders' tokens. It has a default, because older homes lack it. */
  forwarderKey: z.string().default(newSecret),
  cloudflareToken: z.string(),
  /** Management's secret at the instance's OpenID provider. It has a default, because older homes lack it. */
  loginSecret: z.string().default(newSecret),
  age: z.object({ identity: z.string(), recipient: z.string() }),
  /** The private signing key (JWK) of the development issuer. */
  signingKey: z.record(z.string(), z.unknown()),
  /** The ports that were picked at an earlier start. They are used again while they are free. */
  ports: z.record(z.string(), z.number()),
  demo: z
    .object({
      clientId: z.string(),
      containerId: z.string(),
      /** Whether the demo's viewer is a member. In older homes, it isn't. */
      hasViewer: z.boolean().default(false),
    })
    .nullable(),
});
export type Instance = z.infer<typeof instanceSchema>;

/** The folder of an instance (`TAGYARD_HOME`). */
export class Home {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  at(...parts: string[]): string {
    return join(this.path, ...parts);
  }

  /** Creates the folder. Throws `CliError` if that is impossible. */
  async prepare(): Promise<void> {
    try {
      await makeDirectories(resolve(this.at('logs')));
      await chmod(this.path, 0o700);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new CliError(`TAGYARD_HOME ${this.path} can't be used: ${reason}`, { cause });
    }
  }

  /** Keeps other processes from the folder. Throws `CliError` if one uses it. */
  lock(): { release(): void } {
    try {
      return acquireLock(this.at('lock'));
    } catch (cause) {
      if (cause instanceof LockHeldError) {
        const who = cause.pid === null ? '' : ` (process ${cause.pid})`;
        throw new CliError(
          `an instance already runs on ${this.path}${who}; stop it first, or set TAGYARD_HOME to another folder`,
          { cause },
        );
      }
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new CliError(`${this.at('lock')} can't be locked: ${reason}; delete it if no instance runs`, {
        cause,
      });
    }
  }

  /** The instance of this home; the first call creates it. Throws `CliError` if its file is damaged. */
  async instance(): Promise<Instance> {
    const text = await readFile(this.at('instance.json'), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw new CliError(`${this.at('instance.json')} can't be read: ${error.message}`, { cause: error });
    });
    if (text === null) return await this.save(await newInstance());
    try {
      return instanceSchema.parse(JSON.parse(text));
    } catch (cause) {
      throw new CliError(
        `${this.at('instance.json')} is damaged; restore it from a backup, or move ${this.path} away to create a new instance`,
        { cause },
      );
    }
  }

  async save(instance: Instance): Promise<Instance> {
    await writeDurably(this.at('instance.json'), `${JSON.stringify(instance, null, 2)}\n`);
    return instance;
  }
}

function newSecret(): string {
  return randomBytes(24).toString('base64url');
}

async function newInstance(): Promise<Instance> {
  // Loaded here: only the first start needs them.
  const [{ generateIdentity, identityToRecipient }, { exportJWK, generateKeyPair }] = await Promise.all([
    import('age-encryption'),
    import('jose'),
  ]);
  const identity = await generateIdentity();
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  return {
    version: 1,
    instance: `t${randomBytes(4).toString('hex')}`,
    // Above the default of LOOPBACK_SUBNET, 127.77, which a provisioner on this machine may have.
    loopbackSubnet: `127.${randomInt(100, 250)}`,
    infraSecret: newSecret(),
    hopSecret: newSecret(),
    verificationSecret: newSecret(),
    ingestSecret: newSecret(),
    forwarderKey: newSecret(),
    cloudflareToken: newSecret(),
    loginSecret: newSecret(),
    age: { identity, recipient: await identityToRecipient(identity) },
    signingKey: { ...(await exportJWK(privateKey)), kid: randomBytes(8).toString('hex'), alg: 'ES256' },
    ports: {},
    demo: null,
  };
}

/**
 * Creates each level separately: `mkdir` with `recursive` never returns in /proc, where every `mkdir` fails with
 * ENOENT.
 */
async function makeDirectories(path: string): Promise<void> {
  if (existsSync(path)) return;
  if (dirname(path) !== path) await makeDirectories(dirname(path));
  await mkdir(path, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    // Another start has just created it. Only one of the two gets the lock.
    if (error.code !== 'EEXIST') throw error;
  });
}
