import { createPrivateKey, createPublicKey, hkdfSync } from 'node:crypto';

/** What precedes the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410, 7). */
const ED25519_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const KEY_BYTES = 32;
const ALGORITHM = { name: 'Ed25519' } as const;
/** Fixed, so that each certificate is the same at every start. This `notAfter` means no end (RFC 5280, 4.1.2.5). */
const LIFETIME = {
  notBefore: new Date('2020-01-01T00:00:00Z'),
  notAfter: new Date('9999-12-31T23:59:59Z'),
};

/** A certificate and its key: PEM. */
interface Pair {
  readonly cert: string;
  readonly key: string;
}

/** The authority of the names under which a cluster's gateways serve policy scripts. */
interface PolicyAuthority {
  /** The CA's certificate, which tag servers trust: PEM. */
  readonly ca: string;
  /** Issued once for each name. */
  pairFor(host: string): Promise<Pair>;
  /** Forgets the certificates of all other names. */
  retain(hosts: ReadonlySet<string>): void;
}

/**
 * Derives the authority and its certificates from a secret, and stores nothing: each replica of a provisioner has the
 * same ones, also after a restart with an empty disk. Otherwise, running tag servers would trust an authority that is
 * lost.
 */
export async function openPolicyAuthority(secret: string): Promise<PolicyAuthority> {
  // The library takes much memory: only a cluster with gateways loads it.
  await import('reflect-metadata');
  const x509 = await import('@peculiar/x509');
  const pairs = new Map<string, Promise<Pair>>();
  const authority = await keysOf('CA');
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: '01',
    name: 'CN=Tagyard policy scripts',
    keys: authority,
    signingAlgorithm: ALGORITHM,
    ...LIFETIME,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
      await x509.SubjectKeyIdentifierExtension.create(authority.publicKey),
    ],
  });

  async function issue(host: string): Promise<Pair> {
    const { pem, ...keys } = await keysOf(`host ${host}`);
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: `01${Buffer.from(derived(secret, `serial ${host}`))
        .subarray(0, 15)
        .toString('hex')}`,
      issuer: ca.subject,
      subject: 'O=Tagyard',
      publicKey: keys.publicKey,
      signingKey: authority.privateKey,
      signingAlgorithm: ALGORITHM,
      ...LIFETIME,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
        new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: host }]),
        await x509.AuthorityKeyIdentifierExtension.create(ca),
      ],
    });
    return { cert: `${certificate.toString('pem')}\n`, key: pem };
  }

  async function keysOf(purpose: string) {
    const key = createPrivateKey({
      key: Buffer.concat([ED25519_PREFIX, Buffer.from(derived(secret, purpose))]),
      format: 'der',
      type: 'pkcs8',
    });
    const pkcs8 = key.export({ format: 'der', type: 'pkcs8' });
    const spki = createPublicKey(key).export({ format: 'der', type: 'spki' });
    return {
      pem: key.export({ format: 'pem', type: 'pkcs8' }).toString(),
      privateKey: await crypto.subtle.importKey('pkcs8', pkcs8, ALGORITHM, true, ['sign']),
      publicKey: await crypto.subtle.importKey('spki', spki, ALGORITHM, true, ['verify']),
    };
  }

  return {
    ca: `${ca.toString('pem')}\n`,
    pairFor(host) {
      const pair = pairs.get(host) ?? issue(host);
      pairs.set(host, pair);
      pair.catch(() => pairs.delete(host));
      return pair;
    },
    retain(hosts) {
      for (const host of pairs.keys()) if (!hosts.has(host)) pairs.delete(host);
    },
  };
}

function derived(secret: string, purpose: string): ArrayBuffer {
  return hkdfSync('sha256', secret, '', `tagyard policy scripts: ${purpose}`, KEY_BYTES);
}
