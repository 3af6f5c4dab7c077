/** HMAC-SHA256 of a text, as 64 hex digits. */
export type Sign = (text: string) => Promise<string>;

/** Separates the derived key from others that may be derived from the same secret (RFC 5869, `info`). */
const PURPOSE = 'tagyard edge signatures 1';

/**
 * Signs with a key that is derived from the deployment's secret, so that every isolate can verify what another one has signed.
 * Without a secret the key is the isolate's own.
 */
export function signer(secret: string | undefined): Sign {
  const encoder = new TextEncoder();
  // The key and not its promise is kept: a promise belongs to the request that made it.
  let key: CryptoKey | undefined;

  async function derive(): Promise<CryptoKey> {
    const octets = secret ? encoder.encode(secret) : crypto.getRandomValues(new Uint8Array(32));
    const base = await crypto.subtle.importKey('raw', octets, 'HKDF', false, ['deriveKey']);
    const derived = await crypto.subtle.deriveKey(
      { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info: encoder.encode(PURPOSE) },
      base,
      { name: 'HMAC', hash: 'SHA-256', length: 256 },
      false,
      ['sign'],
    );
    key ??= derived;
    return key;
  }

  return async (text) => {
    const signature = await crypto.subtle.sign('HMAC', key ?? (await derive()), encoder.encode(text));
    return new Uint8Array(signature).toHex();
  };
}
