import { randomBytes, randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { exportJWK, generateKeyPair } from 'jose';
import { z } from 'zod';
import { writeDurably } from '../../base/durable.ts';
import { CliError } from '../output/cli-error.ts';

/** What an instance is and keeps for itself, made at its first start. Readable by its owner only. */
const instanceSchema = z.object({
  version: z.literal(1),
  /** In every ownership mark, so that instances on one machine never touch each other's things. */
  instance: z.string(),
  /** First two octets of this instance's own part of 127.0.0.0/8. */
  loopbackSubnet: z.string(),
  infraSecret: z.string(),
  hopSecret: z.string(),
  /** Homes of before there were verifications have none yet. */
  verificationSecret: z.string().default(newSecret),
  cloudflareToken: z.string(),
  age: z.object({ identity: z.string(), recipient: z.string() }),
  /** Private signing key (JWK) of the development issuer. */
  signingKey: z.record(z.string(), z.unknown()),
  /** Ports that were picked because none was asked for; taken again as long as they are free. */
  ports: z.record(z.string(), z.number()),
  demo: z.object({ clientId: z.string(), containerId: z.string() }).nullable(),
});
export type Instance = z.infer<typeof instanceSchema>;

export class Home {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  at(...parts: string[]): string {
    return join(this.path, ...parts);
  }

  /** Makes the directory; throws `CliError` where that can't be. */
  async prepare(): Promise<void> {
    try {
      await makeDirectories(resolve(this.at('logs')));
      await chmod(this.path, 0o700);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new CliError(`TAGYARD_HOME ${this.path} can't be used: ${reason}`, { cause });
    }
  }

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
        `${this.at('instance.json')} is damaged; restore it from a backup, or move ${this.path} away to start anew`,
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
  const identity = await generateIdentity();
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  return {
    version: 1,
    instance: `t${randomBytes(4).toString('hex')}`,
    loopbackSubnet: `127.${randomInt(64, 250)}`,
    infraSecret: newSecret(),
    hopSecret: newSecret(),
    verificationSecret: newSecret(),
    cloudflareToken: newSecret(),
    age: { identity, recipient: await identityToRecipient(identity) },
    signingKey: { ...(await exportJWK(privateKey)), kid: randomBytes(8).toString('hex'), alg: 'ES256' },
    ports: {},
    demo: null,
  };
}

/** Not by `recursive`, which never ends in a file system that has no such directory for every `mkdir`, as /proc has. */
async function makeDirectories(path: string): Promise<void> {
  if (existsSync(path)) return;
  if (dirname(path) !== path) await makeDirectories(dirname(path));
  await mkdir(path, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    // Another start has just made it; the lock tells the two apart.
    if (error.code !== 'EEXIST') throw error;
  });
}
