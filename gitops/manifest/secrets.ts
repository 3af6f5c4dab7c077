import { armor, Decrypter, Encrypter } from 'age-encryption';
import { hash16 } from '../base/ownership.ts';

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

/** Encrypts to an `age1…` recipient and answers ASCII armor, the form of manifests. */
export async function encryptSecret(recipient: string, text: string): Promise<string> {
  const encrypter = new Encrypter();
  encrypter.addRecipient(recipient);
  return `${armor.encode(await encrypter.encrypt(text)).trim()}\n`;
}

/** By identity. Parsing an identity takes as long as a decryption, and a host decrypts thousands of secrets with one. */
const DECRYPTERS = new Map<string, Decrypter>();

/** Decrypts ASCII armor with an `AGE-SECRET-KEY-1…` identity; throws where it is encrypted to another one. */
export async function decryptSecret(identity: string, armored: string): Promise<Secret> {
  let decrypter = DECRYPTERS.get(identity);
  if (decrypter === undefined) {
    decrypter = new Decrypter();
    decrypter.addIdentity(identity);
    DECRYPTERS.set(identity, decrypter);
  }
  return new Secret(await decrypter.decrypt(armor.decode(armored), 'text'));
}
