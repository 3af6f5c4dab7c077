import { armor, Decrypter, Encrypter } from 'age-encryption';
import { hash16 } from '../base/ownership.ts';

/**
 * A decrypted secret that can't be printed by accident: JSON, string conversion and `console.log` show a mark.
 * `fingerprint` (16 hex digits of SHA-256) lets equal secrets be recognised without being known.
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

/** Encrypts to an `age1…` recipient; the answer is ASCII armor as the manifest carries it. */
export async function encryptSecret(recipient: string, text: string): Promise<string> {
  const encrypter = new Encrypter();
  encrypter.addRecipient(recipient);
  return `${armor.encode(await encrypter.encrypt(text)).trim()}\n`;
}

/** By identity: to read one costs as much as to decrypt with it, and a host decrypts thousands with the same. */
const DECRYPTERS = new Map<string, Decrypter>();

/** Decrypts ASCII armor with an `AGE-SECRET-KEY-1…` identity; throws where it isn't encrypted to that identity. */
export async function decryptSecret(identity: string, armored: string): Promise<Secret> {
  let decrypter = DECRYPTERS.get(identity);
  if (decrypter === undefined) {
    decrypter = new Decrypter();
    decrypter.addIdentity(identity);
    DECRYPTERS.set(identity, decrypter);
  }
  return new Secret(await decrypter.decrypt(armor.decode(armored), 'text'));
}
