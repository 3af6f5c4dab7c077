import { createPrivateKey, X509Certificate } from 'node:crypto';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { TerminalError } from '../../../base/errors.ts';
import type { CertificatePaths } from '../../../gitops/appliers/proxy/certificates.ts';
import { OperatorFiles } from '../../../gitops/certificates/operator-files.ts';
import type { DesiredState } from '../../../gitops/desired/desired-state.ts';
import { ensureLocalCa, type LocalCa } from '../../../sites/local/local-ca.ts';
import { loadedManifest } from '../../support/manifest.ts';

const HOST = 'a.example.net';
const DAY_MS = 86_400_000;

describe('certificates from files', () => {
  let home: string;
  let ca: LocalCa;
  let directory: string;
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'tagyard-tls-'));
    ca = await ensureLocalCa(join(home, 'ca'));
  });
  beforeEach(async () => {
    directory = join(home, 'tls');
    for (const folder of [directory, keptIn()]) await rm(folder, { recursive: true, force: true });
    await mkdir(directory);
  });
  afterAll(() => rm(home, { recursive: true, force: true }));

  const file = (name: string) => join(directory, name);
  /** Writes a pair for `name`, as an operator does. */
  const put = async (stem: string, name: string) => {
    const { cert, key } = await ca.pathsFor(name);
    await copyFile(cert, file(`${stem}.pem`));
    await copyFile(key, file(`${stem}.key`));
  };
  const keptIn = () => join(home, 'kept');
  const open = (now = Date.now, hasAuthority = false) =>
    OperatorFiles.open({ directory, keptIn: keptIn(), hasAuthority, now });
  const asked = async (now = Date.now()) => await (await open(() => now)).pathsFor(HOST);
  /** The served certificate and its file. */
  const served = async ({ cert, key }: CertificatePaths) => {
    expect(key).toBe(cert);
    expect((await stat(cert)).mode & 0o777).toBe(0o600);
    const pem = await readFile(cert, 'utf8');
    const leaf = new X509Certificate(pem);
    expect(leaf.checkPrivateKey(createPrivateKey(pem))).toBe(true);
    return { stem: basename(cert).split('@')[0], serial: leaf.serialNumber };
  };
  const serialIn = async (stem: string) =>
    new X509Certificate(await readFile(file(`${stem}.pem`))).serialNumber;

  test.each([
    ['the name’s own', HOST, () => Promise.resolve()],
    ['its parent’s wildcard if there is no other pair', '_.example.net', () => rm(file(`${HOST}.pem`))],
    ['the wildcard if a key is missing', '_.example.net', () => rm(file(`${HOST}.key`))],
    ['the wildcard if its own pair is invalid', '_.example.net', () => put(HOST, 'b.example.net')],
  ])('are %s', async (_case, expected, spoil) => {
    await put(HOST, HOST);
    await put('_.example.net', '*.example.net');
    await spoil();
    expect(await served(await asked())).toEqual({ stem: expected, serial: await serialIn(expected) });
  });

  test('that are missing are refused, and the error names the files and their folder', async () => {
    await expect(asked()).rejects.toBeInstanceOf(TerminalError);
    const put = `put a.example.net.pem and a.example.net.key, or _.example.net.pem and _.example.net.key into ${directory}`;
    await expect(asked()).rejects.toThrow(
      `${HOST}: ${put}, or set ACME_DIRECTORY_URL for this host’s provisioner and set tls to acme (`,
    );
  });

  test('that are missing on a host with an authority can be ordered instead', async () => {
    const files = await open(Date.now, true);
    await expect(files.pathsFor(HOST)).rejects.toThrow(
      /: set tls to acme \(API: PATCH .*; console: .*; git: tls: \{ mode: acme \}\), or put a\.example\.net\.pem/,
    );
  });

  const swapChain = async () => {
    const [leaf = '', issuer = ''] = (await readFile(file(`${HOST}.pem`), 'utf8')).split(/(?=-----BEGIN)/);
    await writeFile(file(`${HOST}.pem`), issuer + leaf);
  };
  const foreignChain = async () => {
    const [leaf = ''] = (await readFile(file(`${HOST}.pem`), 'utf8')).split(/(?=-----BEGIN)/);
    const other = await ensureLocalCa(join(home, 'other-ca'));
    await writeFile(file(`${HOST}.pem`), leaf + (await readFile(other.caFile, 'utf8')));
  };

  test.each([
    ['no certificate', () => writeFile(file(`${HOST}.pem`), 'nothing'), 'holds no certificate in PEM'],
    [
      'a damaged one',
      () => writeFile(file(`${HOST}.pem`), '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'),
      'holds no certificate in PEM',
    ],
    ['no key', () => writeFile(file(`${HOST}.key`), 'nothing'), 'holds no unencrypted private key in PEM'],
    [
      'the key of another certificate',
      async () => copyFile((await ca.pathsFor('c.example.net')).key, file(`${HOST}.key`)),
      'the key is not that of the certificate',
    ],
    [
      'a certificate of another name',
      () => put(HOST, 'b.example.net'),
      'the certificate is for b.example.net, not for a.example.net',
    ],
    ['the chain the wrong way round', swapChain, 'the key is not that of the certificate'],
    [
      'the chain of another certificate',
      foreignChain,
      'certificate 2 of the file is not the issuer of the one before',
    ],
  ])('are refused if a file has %s, with the reason', async (_case, spoil, reason) => {
    await put(HOST, HOST);
    await spoil();
    await expect(asked()).rejects.toBeInstanceOf(TerminalError);
    await expect(asked()).rejects.toThrow(`no certificate for ${HOST}: ${file(`${HOST}.pem`)}`);
    await expect(asked()).rejects.toThrow(reason);
  });

  test.each([
    ['after its end', 398 * DAY_MS, /the certificate ended on \d{4}-\d\d-\d\d$/],
    ['before its start', -2 * DAY_MS, /the certificate is not valid before \d{4}-\d\d-\d\d$/],
  ])('are refused %s', async (_case, away, reason) => {
    await put(HOST, HOST);
    await expect(asked(Date.now() + away)).rejects.toThrow(reason);
  });

  const SITE = 'acme-shop';
  const OWN = `${SITE}-origin.example.net`;
  const follow = (files: OperatorFiles, extra: Parameters<typeof loadedManifest>[2] = {}) => {
    const manifest = loadedManifest(SITE, 0, extra);
    const desired: DesiredState = {
      revision: String(Math.random()),
      sites: new Map([[SITE, { site: SITE, blob: '', manifest, stalled: null }]]),
      onOtherHosts: new Map(),
    };
    files.follow(desired);
  };
  const stateOf = (files: OperatorFiles) => {
    const status = files.statuses(SITE).find(({ key }) => key === OWN);
    return [status?.state, status?.reason];
  };

  test.each<[what: string, spoil: () => Promise<unknown>, reason: RegExp]>([
    ['overwritten with rubbish', () => writeFile(file(`${OWN}.pem`), 'oops'), /holds no certificate in PEM/],
    ['half replaced', () => rm(file(`${OWN}.key`)), /origin\.example\.net\.key is missing/],
    [
      'given another’s key',
      async () => copyFile((await ca.pathsFor('c.example.net')).key, file(`${OWN}.key`)),
      /the key is not that of the certificate/,
    ],
    [
      'replaced with another name’s',
      () => put(OWN, 'b.example.net'),
      /is for b\.example\.net, not for acme-shop-origin/,
    ],
    [
      'taken away',
      async () => {
        for (const ending of ['pem', 'key']) await rm(file(`${OWN}.${ending}`));
      },
      /^put acme-shop-origin\.example\.net\.pem and .* into \//,
    ],
  ])(
    'stay in use as they were when the files are %s, and the state says why',
    async (_what, spoil, reason) => {
      const files = await open();
      follow(files);
      expect(stateOf(files)).toEqual([undefined, undefined]);
      await expect(files.pathsFor(OWN)).rejects.toThrow(`put ${OWN}.pem and ${OWN}.key`);
      expect(stateOf(files)).toEqual(['pending_certificate', expect.stringContaining(`put ${OWN}.pem and`)]);
      expect(files.uncertified().get(SITE)).toContain(`${OWN}: pending_certificate: put ${OWN}.pem`);

      await put(OWN, OWN);
      const good = await files.pathsFor(OWN);
      const before = await served(good);
      expect(stateOf(files)).toEqual(['live', '']);
      expect(files.uncertified().size).toBe(0);

      await spoil();
      expect(await files.isLatest(OWN, good)).toBe(true);
      const again = await open();
      follow(again);
      for (const one of [files, again]) {
        expect(await one.pathsFor(OWN)).toEqual(good);
        expect(await served(good)).toEqual(before);
        const [state, message] = stateOf(one);
        expect(state).toBe('drifted');
        expect(message).toMatch(reason);
        expect(message).toMatch(/; the last valid one stays in use and ends on \d{4}-\d\d-\d\d$/);
        // Visitors notice nothing, so the site stays ready.
        expect(one.uncertified().size).toBe(0);
      }

      await rm((await ca.pathsFor(OWN)).cert);
      await put(OWN, OWN);
      expect(await files.isLatest(OWN, good)).toBe(false);
      const renewed = await served(await files.pathsFor(OWN));
      expect(renewed.serial).not.toBe(before.serial);
      expect(stateOf(files)).toEqual(['live', '']);
    },
  );

  test('stay in use after their end if there are no others, but the site then isn’t ready', async () => {
    await put(OWN, OWN);
    let now = Date.now();
    const files = await open(() => now);
    follow(files);
    const good = await files.pathsFor(OWN);
    now += 398 * DAY_MS;
    // The end is reported even before the next check of the files.
    expect(stateOf(files)).toEqual(['expired', expect.stringMatching(/^the certificate ended on /)]);
    expect(await files.pathsFor(OWN)).toEqual(good);
    expect(stateOf(files)).toEqual(['expired', expect.stringMatching(/\.pem: the certificate ended on /)]);
    expect(files.uncertified().get(SITE)).toContain('expired: ');
  });

  test('report each change once', async () => {
    const heard: string[] = [];
    const files = await open();
    follow(files);
    files.start((site) => heard.push(site));
    await files.pathsFor(OWN).catch(() => undefined);
    await put(OWN, OWN);
    for (let times = 0; times < 3; times += 1) await files.pathsFor(OWN);
    expect(heard).toEqual([SITE]);
    await rm(file(`${OWN}.key`));
    for (let times = 0; times < 3; times += 1) await files.pathsFor(OWN);
    expect(heard).toEqual([SITE, SITE]);
  });

  test('stay in use for a name that the wildcard’s new certificate no longer has', async () => {
    await put('_.example.net', '*.example.net');
    const files = await open();
    const [a, b] = [await files.pathsFor('a.example.net'), await files.pathsFor('b.example.net')];
    expect(a).toEqual(b);
    await put('_.example.net', 'a.example.net');
    expect(await files.isLatest('a.example.net', a)).toBe(false);
    expect(await files.isLatest('b.example.net', b)).toBe(true);
    expect(await files.pathsFor('b.example.net')).toEqual(b);
  });

  test('have their copies removed once they are not in use', async () => {
    for (const host of [OWN, 'tags.acme.example']) await put(host, host);
    const files = await open();
    const kept = async () => (await readdir(keptIn())).map((name) => name.split('@')[0]).sort();
    const [own, custom] = [await files.pathsFor(OWN), await files.pathsFor('tags.acme.example')];
    // Nothing is removed before the first desired state.
    await files.retain([]);
    expect(await kept()).toEqual([OWN, 'tags.acme.example']);
    follow(files);
    await files.retain([{ host: 'tags.acme.example', tls: 'files', files: custom }]);
    expect(await kept()).toEqual([OWN, 'tags.acme.example']);
    await files.retain([]);
    expect(await kept()).toEqual([OWN]);
    // Renewed, and not in use yet: both exist until the proxy has loaded the new one.
    await rm((await ca.pathsFor(OWN)).cert);
    await put(OWN, OWN);
    const renewed = await files.pathsFor(OWN);
    await files.retain([{ host: OWN, tls: 'files', files: own }]);
    expect(await kept()).toEqual([OWN, OWN]);
    await files.retain([{ host: OWN, tls: 'files', files: renewed }]);
    expect(await readdir(keptIn())).toEqual([basename(renewed.cert)]);
    // The next process has checked no name yet, and keeps the copies that its names may need.
    const next = await open();
    follow(next);
    await next.retain([]);
    expect(await kept()).toEqual([OWN]);
  });

  test.each<[string, (copy: string) => Promise<unknown>]>([
    ['damaged', (copy) => writeFile(copy, 'oops')],
    ['lost', (copy) => rm(copy)],
  ])('are copied again if the copy is %s', async (_what, spoil) => {
    await put(HOST, HOST);
    const files = await open();
    const before = await files.pathsFor(HOST);
    await spoil(before.cert);
    expect(await files.pathsFor(HOST)).toEqual(before);
    expect((await served(before)).serial).toBe(await serialIn(HOST));
  });

  test('are refused with an error that reveals nothing of the key', async () => {
    await put(HOST, HOST);
    const key = await readFile(file(`${HOST}.key`), 'utf8');
    await copyFile((await ca.pathsFor('c.example.net')).key, file(`${HOST}.key`));
    const error = await asked().catch((cause: unknown) => String(cause));
    for (const line of key.split('\n').slice(1, -2)) expect(error).not.toContain(line);
  });
});
