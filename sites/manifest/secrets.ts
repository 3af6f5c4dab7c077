import { armor, Decrypter, Encrypter, identityToRecipient } from 'age-encryption';
import { hash16 } from '../../base/ownership.ts';

/**
 * A decrypted secret that can't be printed by accident: JSON, string conversion and `console.log` show `[secret]`.
 * `fingerprint` (16 hex digits of SHA-256) shows whether two secrets are equal without revealing them.
 */
export class Secret {
  readonly #text: string;
  readonly fingerprint: string;

  constructor(text: string) {
    this.#text = text;
    this.fingerprint = hash16(text);
  }

  reveal(): string {
    return this.#text;
  }

  toJSON(): string {
    return '[secret]';
  }

  toString(): string {
    return '[secret]';
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]';
  }
}

/** Encrypts to an `age1…` recipient. Returns ASCII armor, the form that secrets have in manifests. */
export async function encryptSecret(recipient: string, text: string): Promise<string> {
  const encrypter = new Encrypter();
  encrypter.addRecipient(recipient);
  return `${armor.encode(await encrypter.encrypt(text)).trim()}\n`;
}

const BINDING = 'tagyard-container: ';

/**
 * Encrypts a secret of one container. Its plaintext begins with the container's id, so that no other site's manifest can
 * use a copy of the ciphertext.
 */
export async function encryptFor(recipient: string, container: string, text: string): Promise<string> {
  return await encryptSecret(recipient, `${BINDING}${container}\n${text}`);
}

/** The secret without its binding, and the id of the container that it is bound to; `null`: it isn't bound. */
export function unbound(secret: Secret): { readonly secret: Secret; readonly container: string | null } {
  const text = secret.reveal();
  const end = text.startsWith(BINDING) ? text.indexOf('\n') : -1;
  if (end < 0) return { secret, container: null };
  return { secret: new Secret(text.slice(end + 1)), container: text.slice(BINDING.length, end) };
}

/**
 * The decrypters by the text of their key file. They are kept because parsing an identity takes as long as a
 * decryption, and a host decrypts thousands of secrets with the same file.
 */
const DECRYPTERS = new Map<string, Decrypter>();

/**
 * The identities of an age key file, as age-keygen writes it: one per line, besides comments and empty lines. Throws an
 * `Error` that names the line, without its text.
 */
export function identitiesIn(keyFile: string): string[] {
  const identities = keyFile.split('\n').flatMap((line, index) => {
    const text = line.trim();
    if (text === '' || text.startsWith('#')) return [];
    if (text.startsWith('AGE-SECRET-KEY-')) return [text];
    throw new Error(
      `line ${index + 1} is not an age identity (AGE-SECRET-KEY-…); an identity with a passphrase must be decrypted first`,
    );
  });
  if (identities.length === 0) throw new Error('there is no age identity (AGE-SECRET-KEY-…) in it');
  return identities;
}

/** Decrypts ASCII armor with the identities of an age key file; throws if it is encrypted to none of them. */
export async function decryptSecret(keyFile: string, armored: string): Promise<Secret> {
  let decrypter = DECRYPTERS.get(keyFile);
  if (decrypter === undefined) {
    decrypter = new Decrypter();
    for (const identity of identitiesIn(keyFile)) decrypter.addIdentity(identity);
    DECRYPTERS.set(keyFile, decrypter);
  }
  return new Secret(await decrypter.decrypt(armor.decode(armored), 'text'));
}

/** The recipients of an age key file's identities. */
export async function recipientsOf(keyFile: string): Promise<string[]> {
  return await Promise.all(identitiesIn(keyFile).map((identity) => identityToRecipient(identity)));
}

/**
 * Tests each identity of a key file: encrypts to it and decrypts the result. Throws an `Error` without keys on failure.
 */
export async function testIdentities(keyFile: string): Promise<void> {
  for (const [index, identity] of identitiesIn(keyFile).entries()) {
    try {
      const recipient = await identityToRecipient(identity);
      await decryptSecret(identity, await encryptSecret(recipient, PROBE));
    } catch {
      throw new Error(`its identity ${index + 1} is damaged: it can’t decrypt what is encrypted to it`);
    }
  }
}

/** Tests a recipient by encrypting to it. Throws an `Error` if that fails. */
export async function testRecipient(recipient: string): Promise<void> {
  try {
    await encryptSecret(recipient, PROBE);
  } catch {
    throw new Error('it is damaged: nothing can be encrypted to it. Copy it again from age-keygen -y');
  }
}

const PROBE = 'tried at the start';
