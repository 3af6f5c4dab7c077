import { createHash } from 'node:crypto';
import { armor, Decrypter, Encrypter } from 'age-encryption';

/**
 * A decrypted secret that can't be printed by accident: JSON, string conversion and `console.log` show a mark.
 * `fingerprint` (16 hex digits of SHA-256) lets equal secrets be recognised without being known.
 */
export class Secret {
  readonly #text: string;
  readonly fingerprint: string;

  constructor(text: string) {
    this.#text = text;
    this.fingerprint = createHash('sha256').update(text).digest('hex').slice(0, 16);
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

/** Encrypts to an `age1…` recipient; the answer is ASCII armor as the manifest carries it. */
export async function encryptSecret(recipient: string, text: string): Promise<string> {
  const encrypter = new Encrypter();
  encrypter.addRecipient(recipient);
  return `${armor.encode(await encrypter.encrypt(text)).trim()}\n`;
}

/** Decrypts ASCII armor with an `AGE-SECRET-KEY-1…` identity; throws where it isn't encrypted to that identity. */
export async function decryptSecret(identity: string, armored: string): Promise<Secret> {
  const decrypter = new Decrypter();
  decrypter.addIdentity(identity);
  return new Secret(await decrypter.decrypt(armor.decode(armored), 'text'));
}
