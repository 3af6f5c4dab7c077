import { type CryptoKey, importJWK, type JWK } from 'jose';

/** RFC 7518, 3.3 and 3.5. */
const SHORTEST_RSA_BITS = 2_048;

/** An algorithm by which a key without `alg` can be imported, by its curve or type. */
const ALGORITHM_OF: Readonly<Record<string, string>> = {
  RSA: 'RS256',
  'P-256': 'ES256',
  'P-384': 'ES384',
  'P-521': 'ES512',
  Ed25519: 'EdDSA',
};

interface KeySet {
  readonly keys: readonly unknown[];
}

/**
 * The entries of a JWKS without the faulty ones, and what is wrong with those: they are to be ignored (RFC
 * 7517, 5), else one of them would make every key unusable. Throws nothing: what is no JWKS is returned as it is.
 */
export async function usableKeys(set: unknown): Promise<{ set: unknown; faults: string[] }> {
  if (!isKeySet(set)) return { set, faults: [] };
  const judged = await Promise.all(set.keys.map(async (key) => ({ key, fault: await faultOf(key) })));
  return {
    set: { ...set, keys: judged.filter(({ fault }) => fault === null).map(({ key }) => key) },
    faults: judged.flatMap(({ fault }) => fault ?? []),
  };
}

function isKeySet(value: unknown): value is KeySet {
  return typeof value === 'object' && value !== null && 'keys' in value && Array.isArray(value.keys);
}

async function faultOf(entry: unknown): Promise<string | null> {
  if (typeof entry !== 'object' || entry === null) return 'an entry is not an object';
  const jwk: JWK = entry;
  if (jwk.use === 'enc') return null; // it is never chosen for a signature
  try {
    const algorithm = jwk.alg ?? ALGORITHM_OF[jwk.crv ?? ''] ?? ALGORITHM_OF[jwk.kty ?? ''] ?? '';
    const key = await importJWK(jwk, algorithm, { extractable: true });
    const reason = 'type' in key ? weaknessOf(key) : 'it is a shared secret';
    return reason === null ? null : describe(jwk, reason);
  } catch (error) {
    return describe(jwk, error instanceof Error ? error.message : String(error));
  }
}

function weaknessOf({ type, algorithm }: CryptoKey): string | null {
  if (type !== 'public') return 'it is not a public key';
  if (!('modulusLength' in algorithm)) return null;
  return Number(algorithm.modulusLength) < SHORTEST_RSA_BITS
    ? `it has fewer than ${SHORTEST_RSA_BITS} bits`
    : null;
}

function describe({ kid }: JWK, reason: string): string {
  return `the key ${JSON.stringify(kid ?? null)} is not used: ${reason}`;
}
