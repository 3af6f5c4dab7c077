import { createECDH, createPrivateKey, hkdfSync } from 'node:crypto';

/**
 * A P-256 key for one purpose, derived from a secret, as PEM (PKCS #8): it is the same again if all that was stored is
 * lost.
 */
export function derivedKey(secret: string, purpose: string): string {
  const d = Buffer.from(hkdfSync('sha256', secret, '', `tagyard ${purpose}`, 32));
  const pair = createECDH('prime256v1');
  pair.setPrivateKey(d);
  const point = pair.getPublicKey();
  const text = (part: Buffer) => part.toString('base64url');
  const jwk = {
    kty: 'EC',
    crv: 'P-256',
    x: text(point.subarray(1, 33)),
    y: text(point.subarray(33)),
    d: text(d),
  };
  return createPrivateKey({ key: jwk, format: 'jwk' }).export({ format: 'pem', type: 'pkcs8' }).toString();
}
