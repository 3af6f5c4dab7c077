import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TerminalError } from '../../../../base/errors.ts';
import {
  type CertificateSource,
  certificateFor,
  certificatesByMode,
  isStillCurrent,
} from '../../../../gitops/appliers/proxy/certificates.ts';
import { CertificateStore } from '../../../../gitops/certificates/store.ts';
import { ensureLocalCa, type LocalCa } from '../../../../sites/local/local-ca.ts';

const WAITING = { host: 'a.example', tls: 'acme', files: null } as const;

describe('a vhost that waits for its certificate', () => {
  let home: string;
  let ca: LocalCa;
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'tagyard-current-'));
    ca = await ensureLocalCa(join(home, 'ca'));
  });
  afterEach(() => rm(home, { recursive: true, force: true }));

  /** What the authority has issued, as the host keeps it. */
  const ordered = async (): Promise<CertificateSource> => {
    const store = new CertificateStore(join(home, 'names'));
    await store.prepare();
    const pathsFor = async (host: string) => ((await store.read(host)) === null ? null : store.paths(host));
    return { pathsFor, retain: async () => undefined };
  };

  test('is current while there is still none', async () => {
    expect(await isStillCurrent(certificatesByMode({ files: ca, acme: await ordered() }), WAITING)).toBe(
      true,
    );
  });

  test('isn’t current when the host has no authority any more: applying the site reports this', async () => {
    const source = certificatesByMode({ files: ca });
    expect(await isStillCurrent(source, WAITING)).toBe(false);
    await expect(certificateFor(source, WAITING)).rejects.toThrow(
      new TerminalError(
        'a.example has tls: acme, but ACME_DIRECTORY_URL isn’t set on this host: set ACME_DIRECTORY_URL for this host’s provisioner, or set tls to files (API: PATCH /server-containers/<id> {"tls":"files"}; console: Certificates in the settings; git: tls: { mode: files })',
      ),
    );
  });

  test('isn’t current when the stored files of its name can’t be read', async () => {
    const acme = await ordered();
    await mkdir(join(home, 'names', `${WAITING.host}.pem`));
    expect(await isStillCurrent(certificatesByMode({ files: ca, acme }), WAITING)).toBe(false);
  });
});
