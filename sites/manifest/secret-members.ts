import type { Manifest } from './schema.ts';

interface SecretMember {
  /** Its path in the manifest. */
  readonly name: string;
  /** The ciphertext; `undefined`: the manifest has none. */
  read(manifest: Manifest): string | undefined;
  /** The manifest with another ciphertext in the place of the present one. */
  replace(manifest: Manifest, armored: string): Manifest;
}

/** All members of a manifest that are encrypted. */
export const SECRET_MEMBERS: readonly SecretMember[] = [
  {
    name: 'containerConfig',
    read: ({ containerConfig }) => containerConfig,
    replace: (manifest, containerConfig) => ({ ...manifest, containerConfig }),
  },
  {
    name: 'serviceAccount.key',
    read: ({ serviceAccount }) => serviceAccount?.key,
    replace: (manifest, key) =>
      manifest.serviceAccount
        ? { ...manifest, serviceAccount: { ...manifest.serviceAccount, key } }
        : manifest,
  },
  {
    name: 'tls.key',
    read: ({ tls }) => tls.key,
    replace: (manifest, key) => ({ ...manifest, tls: { ...manifest.tls, key } }),
  },
];
