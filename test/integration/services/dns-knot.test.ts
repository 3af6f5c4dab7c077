import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { generateIdentity } from 'age-encryption';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RetryableError, TerminalError } from '../../../base/errors.ts';
import type { Change } from '../../../gitops/appliers/contract.ts';
import { dnsApplier } from '../../../gitops/appliers/dns/applier.ts';
import type { RecordSpec } from '../../../gitops/appliers/dns/desired.ts';
import type { DnsRef } from '../../../gitops/appliers/dns/observed.ts';
import { rfc2136Dns } from '../../../gitops/appliers/dns/rfc2136.ts';
import { type Rfc2136Options, rfc2136Client } from '../../../gitops/clients/rfc2136.ts';
import { UpdateRefusal } from '../../../gitops/clients/rfc2136-errors.ts';
import { writeTsigKey } from '../../../gitops/clients/tsig-key.ts';
import { readEnv } from '../../../gitops/env.ts';
import { buildHost } from '../../../gitops/host/host.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { describeWith } from '../../support/components.ts';
import { KNOT_ZONE, type Knot, type KnotKey, startKnot } from '../../support/dns/knot.ts';
import { type Fault, startRelay } from '../../support/dns/relay.ts';
import { eventually } from '../../support/eventually.ts';
import { loadedManifest } from '../../support/manifest.ts';

const { signal } = new AbortController();
const identity = { instance: 'test', host: 'tag-1' };
const HOST = '198.51.100.4';
const ALIAS = '{host}.cdn.example';

describeWith('knot', 'DNS by RFC 2136', () => {
  let knot: Knot;
  let cleanups: (() => Promise<unknown>)[];
  beforeEach(async () => {
    knot = await startKnot();
    cleanups = [() => knot.close()];
  });
  afterEach(async () => {
    for (const cleanup of cleanups.toReversed()) await cleanup();
  });

  interface Setup extends Partial<Rfc2136Options> {
    readonly key?: KnotKey;
    readonly port?: number;
    readonly edgeTarget?: string;
  }
  function applierOf({ key = 'tagyard', port = knot.port, edgeTarget = ALIAS, ...options }: Setup = {}) {
    const client = rfc2136Client({
      server: { host: '127.0.0.1', port },
      zone: KNOT_ZONE,
      keyFile: knot.keyFile(key),
      ...options,
    });
    const provider = rfc2136Dns({ client, zone: KNOT_ZONE });
    return dnsApplier({ provider, identity, zone: KNOT_ZONE, hostAddress: HOST, edgeTarget });
  }
  type Dns = ReturnType<typeof applierOf>;

  async function planOf(applier: Dns, ...manifests: LoadedManifest[]) {
    const desired = manifests.flatMap((manifest) => applier.desired(manifest));
    return applier.plan(desired, await applier.observe(desired, signal));
  }
  async function applyAll(applier: Dns, changes: readonly Change<RecordSpec, DnsRef>[]) {
    const outcomes = await Promise.allSettled(changes.map((change) => applier.apply(change, signal)));
    return outcomes.flatMap((outcome, index) =>
      outcome.status === 'rejected' ? [{ key: changes[index]?.key, error: outcome.reason }] : [],
    );
  }
  /** Brings the sites up and expects that nothing is left to do. */
  async function converge(applier: Dns, ...manifests: LoadedManifest[]): Promise<void> {
    expect(await applyAll(applier, (await planOf(applier, ...manifests)).changes)).toEqual([]);
    expect(await planOf(applier, ...manifests)).toEqual({ changes: [], conflicts: [] });
  }
  async function relayTo(port: number, fault: Fault = 'none') {
    const relay = await startRelay(port);
    relay.fault = fault;
    cleanups.push(relay.close);
    return relay;
  }
  const acme = loadedManifest();
  const failure = (promise: Promise<unknown>) =>
    promise.then(
      () => null,
      (error: unknown) => error,
    );

  describe('what it writes', () => {
    test('is a site’s records with a mark beside each, in one transaction', async () => {
      const before = await knot.serial();
      await converge(applierOf(), acme);
      expect(await knot.serial()).toBe(before + 1);
      expect(await knot.read('acme-shop', 'CNAME')).toEqual(['acme-shop.example.net.cdn.example.']);
      expect(await knot.read('acme-shop-origin', 'A')).toEqual([HOST]);
      expect(await knot.read('acme-shop-preview', 'A')).toEqual([HOST]);
      for (const name of ['cname.acme-shop', 'a.acme-shop-origin', 'a.acme-shop-preview']) {
        expect(await knot.read(`_tagyard-${name}`, 'TXT')).toEqual([
          expect.stringMatching(/^"tgy1 test tag-1 acme-shop [0-9a-f]{8}"$/),
        ]);
      }
    });

    test('is a record for each name, because no wildcard covers a name that has a mark below it', async () => {
      await knot.update('add * 300 A 203.0.113.9');
      expect(await knot.read('acme-shop-origin', 'A')).toEqual(['203.0.113.9']);
      await converge(applierOf(), acme);
      expect(await knot.read('acme-shop-origin', 'A')).toEqual([HOST]);
      await knot.update('del acme-shop-origin A');
      expect(await knot.read('acme-shop-origin', 'A')).toEqual([]);
      await converge(applierOf(), acme);
      expect(await knot.read('acme-shop-origin', 'A')).toEqual([HOST]);
    });

    test('takes a few messages for 300 records, each of them one transaction', async () => {
      const sites = Array.from({ length: 100 }, (_, number) => loadedManifest(`shop-${number}`, number));
      const before = await knot.serial();
      await converge(applierOf(), ...sites);
      expect((await knot.serial()) - before).toBe(2);
    });

    test.each([
      ['an address', '203.0.113.7', 'A', '203.0.113.7'],
      ['an IPv6 address', '2001:DB8:0::7', 'AAAA', '2001:db8::7'],
      ['a name', 'Edge.Example.', 'CNAME', 'edge.example.'],
    ])(
      'leads edge hostnames to %s, and replaces what they led to before in one transaction',
      async (_what, edgeTarget, type, content) => {
        await converge(applierOf({ edgeTarget: '192.0.2.200' }), acme);
        await converge(applierOf({ edgeTarget: 'before.example' }), acme);
        const before = await knot.serial();
        await converge(applierOf({ edgeTarget }), acme);
        expect(await knot.serial()).toBe(before + 1);
        const read = async (of: string) => [of, await knot.read('acme-shop', of)] as const;
        // A query for an address would also show an alias: none is left.
        expect(await read(type)).toEqual([type, [content]]);
        expect(await knot.read('_tagyard-cname.acme-shop', 'TXT')).toHaveLength(type === 'CNAME' ? 1 : 0);
      },
    );

    test('is restored where another client edited, doubled or removed it', async () => {
      await converge(applierOf(), acme);
      await knot.update(
        'del acme-shop-origin A',
        'add acme-shop-origin 300 A 203.0.113.9',
        'add acme-shop-preview 300 A 203.0.113.9',
        'del acme-shop CNAME',
      );
      const { changes } = await planOf(applierOf(), acme);
      expect(changes.map(({ op, key }) => `${op} ${key}`)).toEqual([
        'update acme-shop-origin.example.net/A',
        'update acme-shop-preview.example.net/A',
        'update acme-shop.example.net/CNAME',
      ]);
      await converge(applierOf(), acme);
      expect(await knot.read('acme-shop-origin', 'A')).toEqual([HOST]);
      expect(await knot.read('acme-shop-preview', 'A')).toEqual([HOST]);
      expect(await knot.read('acme-shop', 'CNAME')).toHaveLength(1);
    });

    test('is removed with the site, including marks that have lost their record', async () => {
      await converge(applierOf(), acme);
      await knot.update('del acme-shop-origin A', 'add acme-shop-preview 300 TXT "their own"');
      await converge(applierOf());
      for (const name of ['cname.acme-shop', 'a.acme-shop-origin', 'a.acme-shop-preview']) {
        expect(await knot.read(`_tagyard-${name}`, 'TXT')).toEqual([]);
      }
      expect(await knot.read('acme-shop-preview', 'A')).toEqual([]);
      expect(await knot.read('acme-shop-preview', 'TXT')).toHaveLength(1);
    });
  });

  describe('foreign records', () => {
    const MINE = 'tgy1 test tag-1 acme-shop 0123abcd';
    test.each([
      ['an address', ['add acme-shop-origin 300 A 203.0.113.9'], ['acme-shop-origin/A']],
      ['the other address type', ['add acme-shop-origin 300 AAAA 2001:db8::9'], ['acme-shop-origin/A']],
      ['an alias', ['add acme-shop-origin 300 CNAME elsewhere.example.'], ['acme-shop-origin/A']],
      ['a delegation', ['add acme-shop-origin 300 NS ns.elsewhere.example.'], ['acme-shop-origin/A']],
      ['mail beside an address (none)', ['add acme-shop-origin 300 MX 10 mail'], []],
      ['mail beside an alias', ['add acme-shop 300 MX 10 mail'], ['acme-shop/CNAME']],
      [
        'a mark alone',
        ['add _tagyard-a.acme-shop-origin 300 TXT "tgy1 prod tag-1 other 0123abcd"'],
        ['acme-shop-origin/A'],
      ],
      [
        'a second mark beside ours',
        [
          'add acme-shop-origin 300 A 203.0.113.9',
          `add _tagyard-a.acme-shop-origin 300 TXT "${MINE}"`,
          'add _tagyard-a.acme-shop-origin 300 TXT "tgy1 prod tag-1 other 0123abcd"',
        ],
        ['acme-shop-origin/A'],
      ],
    ])('are a conflict where they claim the name: %s', async (_what, lines, expected) => {
      await knot.update(...lines);
      const applier = applierOf();
      const { changes, conflicts } = await planOf(applier, acme);
      expect(conflicts.map(({ key }) => key.replace('.example.net', ''))).toEqual(expected);
      const before = await everything(knot, lines);
      expect(await applyAll(applier, changes)).toEqual([]);
      expect(await everything(knot, lines)).toEqual(before);
    });

    test('include a record whose mark was removed', async () => {
      await converge(applierOf(), acme);
      await knot.update('del _tagyard-a.acme-shop-origin TXT');
      const { changes, conflicts } = await planOf(applierOf(), acme);
      expect(changes).toEqual([]);
      expect(conflicts).toMatchObject([{ key: 'acme-shop-origin.example.net/A' }]);
      // Nor is the record removed with the site.
      await converge(applierOf());
      expect(await knot.read('acme-shop-origin', 'A')).toEqual([HOST]);
    });

    test('are taken over completely where the manifest adopts them, with their marks', async () => {
      await knot.update(
        'add acme-shop-origin 300 A 203.0.113.9',
        'add acme-shop-origin 300 A 203.0.113.10',
        'add acme-shop-origin 60 AAAA 2001:db8::9',
        'add _tagyard-aaaa.acme-shop-origin 300 TXT "tgy1 prod \\"x\\" other 0123abcd"',
        'add acme-shop-preview 300 CNAME elsewhere.example.',
      );
      await converge(applierOf(), { ...acme, adopt: true });
      expect(await knot.read('acme-shop-origin', 'A')).toEqual([HOST]);
      expect(await knot.read('acme-shop-origin', 'AAAA')).toEqual([]);
      expect(await knot.read('_tagyard-aaaa.acme-shop-origin', 'TXT')).toEqual([]);
      expect(await knot.read('acme-shop-preview', 'A')).toEqual([HOST]);
    });

    test('are not deleted for an alias, even if the manifest adopts them', async () => {
      await knot.update('add acme-shop 300 MX 10 mail');
      const applier = applierOf();
      const failed = await applyAll(applier, (await planOf(applier, { ...acme, adopt: true })).changes);
      expect(failed).toMatchObject([
        { key: 'acme-shop.example.net/CNAME', error: expect.any(TerminalError) },
      ]);
      expect(await knot.read('acme-shop', 'MX')).toHaveLength(1);
    });
  });

  describe('a change in a race', () => {
    const beta = loadedManifest('beta-shop', 1);
    const MARK = '_tagyard-a.acme-shop-origin';

    // What another client does between observation and apply, and how many addresses (A) or marks the name then has.
    test.each([
      ['takes the name', [], ['add acme-shop-origin 300 A 203.0.113.9'], { MARK: 0 }],
      ['gives the name an alias', [], ['add acme-shop-origin 300 CNAME elsewhere.example.'], { MARK: 0 }],
      ['marks the name', [], [`add ${MARK} 300 TXT "tgy1 prod tag-1 other 0123abcd"`], { A: 0 }],
      ['adds an address to a changed record', ['edit'], ['add acme-shop-origin 300 A 203.0.113.9'], { A: 2 }],
      ['changes the mark of a changed record', ['edit'], [`add ${MARK} 300 TXT "other"`], { MARK: 2 }],
      ['removes a changed record', ['edit'], ['del acme-shop-origin A'], { A: 0 }],
    ] as const)(
      'is refused by the server when another client %s; the other changes are applied',
      async (_what, first, lines, left) => {
        const applier = applierOf();
        if (first.length > 0) {
          await converge(applier, acme);
          await knot.update('del acme-shop-origin A', 'add acme-shop-origin 300 A 192.0.2.77');
        }
        const { changes } = await planOf(applier, acme, beta);
        await knot.update(...lines);
        const failed = await applyAll(applier, changes);
        expect(failed).toMatchObject([
          { key: 'acme-shop-origin.example.net/A', error: expect.any(RetryableError) },
        ]);
        expect(await knot.read('beta-shop-origin', 'A')).toEqual([HOST]);
        expect(await knot.read('acme-shop-origin', 'A')).not.toContain(HOST);
        const counts = { A: await knot.read('acme-shop-origin', 'A'), MARK: await knot.read(MARK, 'TXT') };
        for (const [what, count] of Object.entries(left)) {
          expect(counts[what === 'A' ? 'A' : 'MARK']).toHaveLength(count);
        }
      },
    );

    test('is refused, not ignored without an error, if its alias would be beside a new record', async () => {
      const applier = applierOf();
      const { changes } = await planOf(applier, acme);
      await knot.update('add acme-shop 300 MX 10 mail');
      expect(await applyAll(applier, changes)).toMatchObject([{ key: 'acme-shop.example.net/CNAME' }]);
      expect((await planOf(applier, acme)).conflicts).toMatchObject([{ key: 'acme-shop.example.net/CNAME' }]);
      expect(await knot.read('_tagyard-cname.acme-shop', 'TXT')).toEqual([]);
    });

    test('keeps a record that another client took over between observation and removal', async () => {
      const applier = applierOf();
      await converge(applier, acme);
      const { changes } = await planOf(applier);
      await knot.update(`del ${MARK} TXT`, `add ${MARK} 300 TXT "tgy1 prod tag-1 other 0123abcd"`);
      expect(await applyAll(applier, changes)).toMatchObject([
        { key: 'acme-shop-origin.example.net/A', error: expect.any(RetryableError) },
      ]);
      expect(await knot.read('acme-shop-origin', 'A')).toEqual([HOST]);
      await converge(applier);
      expect(await knot.read('acme-shop-origin', 'A')).toEqual([HOST]);
    });
  });

  describe('a faulty server', () => {
    test('gets an update only once if its outcome is unknown', async () => {
      const relay = await relayTo(knot.port);
      const applier = applierOf({ port: relay.port, silenceSeconds: 1 });
      const { changes } = await planOf(applier, acme);
      const before = await knot.serial();
      relay.fault = 'silent';
      const failed = await applyAll(applier, changes);
      expect(failed.map(({ error }) => error)).toEqual(changes.map(() => expect.any(RetryableError)));
      await eventually(async () => expect(await knot.serial()).toBe(before + 1));
      relay.fault = 'none';
      // The record exists: neither a new plan nor another attempt at the same changes sends the update again.
      expect((await planOf(applier, acme)).changes).toEqual([]);
      expect(await applyAll(applier, changes)).toEqual([]);
      expect(await knot.serial()).toBe(before + 1);
    });

    test.each([
      ['says nothing', 'silent'],
      ['hangs up in the middle', { cutAfter: 9_000 }],
      ['hangs up before its first byte', { cutAfter: 0 }],
    ] as const)('is tried again, and no zone counts as empty or short, when it %s', async (_what, fault) => {
      // Large enough for several messages, so that a part of the answer is valid by itself.
      const records = Array.from({ length: 600 }, (_, at) => `add big-${at} 300 TXT "${'x'.repeat(200)}"`);
      for (let at = 0; at < records.length; at += 150) await knot.update(...records.slice(at, at + 150));
      const relay = await relayTo(knot.port, fault);
      const applier = applierOf({ port: relay.port, silenceSeconds: 1 });
      expect(await failure(planOf(applier, acme))).toBeInstanceOf(RetryableError);
      relay.fault = 'none';
      await converge(applier, acme);
    });

    test('is tried again when nothing listens on its port', async () => {
      await knot.stop();
      expect(await failure(planOf(applierOf(), acme))).toBeInstanceOf(RetryableError);
    });

    test('isn’t waited for any longer when the signal is aborted', async () => {
      const relay = await relayTo(0);
      const aborting = new AbortController();
      const applier = applierOf({ port: relay.port, silenceSeconds: 600 });
      const observed = failure(applier.observe([], aborting.signal));
      aborting.abort();
      expect(await observed).toBeInstanceOf(RetryableError);
    });

    test('that answers from an old serial gets no update twice, and converges when it has caught up', async () => {
      const secondary = await startKnot({ primary: knot.port });
      cleanups.push(() => secondary.close());
      // The applier reads the secondary, which forwards updates to the primary and keeps its old zone meanwhile.
      const applier = applierOf({ port: secondary.port });
      const { changes } = await planOf(applier, acme);
      expect(await applyAll(applier, changes)).toEqual([]);
      const serial = await knot.serial();
      expect(await secondary.serial()).toBeLessThan(serial);

      const again = await planOf(applier, acme);
      expect(again.changes).toHaveLength(3);
      const failed = await applyAll(applier, again.changes);
      expect(failed.map(({ error }) => error)).toEqual(changes.map(() => expect.any(RetryableError)));
      expect(await knot.serial()).toBe(serial);

      await secondary.refresh();
      await eventually(async () => expect(await secondary.serial()).toBe(serial));
      expect(await planOf(applier, acme)).toEqual({ changes: [], conflicts: [] });
    });
  });

  describe('a server that refuses', () => {
    test.each<[string, Setup, RegExp]>([
      ['a zone that it doesn’t hold', { zone: 'example.org' }, /NOTAUTH.*DNS_ZONE/],
      ['a key that it doesn’t know', { keyFile: 'unknown' }, /BADKEY.*DNS_TSIG_NAME/],
      ['a key with another secret', { keyFile: 'wrong' }, /BADSIG.*DNS_TSIG_SECRET_FILE/],
    ])('to show the zone is reported by an error that says what to fix: %s', async (_what, options, says) => {
      const secretFile = join(knot.dir, 'other.secret');
      await writeFile(secretFile, Buffer.alloc(32, 1).toString('base64'));
      const keyFile = join(knot.dir, 'other.key');
      const name = options.keyFile === 'unknown' ? 'stranger' : 'tagyard';
      await writeTsigKey(keyFile, { name, algorithm: 'hmac-sha256', secretFile });
      const setup = options.keyFile === undefined ? options : { ...options, keyFile };
      const error = await failure(planOf(applierOf(setup), acme));
      expect(error).toBeInstanceOf(UpdateRefusal);
      expect(String(error)).toMatch(says);
    });

    test('the names of one site makes only that site fail', async () => {
      const applier = applierOf({ key: 'half' });
      const { changes } = await planOf(applier, acme, loadedManifest('beta-shop', 1));
      const failed = await applyAll(applier, changes);
      expect(failed.map(({ key }) => key?.split('.')[0])).toEqual([
        'beta-shop-origin',
        'beta-shop-preview',
        'beta-shop',
      ]);
      expect(failed.map(({ error }) => error)).toEqual(Array(3).fill(expect.any(UpdateRefusal)));
      expect((await planOf(applier, acme)).changes).toEqual([]);
    });

    test('every update by a key is reported as a permanent fault with a remedy, and nothing changes', async () => {
      const applier = applierOf({ key: 'reader' });
      const before = await knot.serial();
      const failed = await applyAll(applier, (await planOf(applier, acme)).changes);
      expect(failed.map(({ error }) => error)).toEqual(Array(3).fill(expect.any(UpdateRefusal)));
      expect(failed.map(({ error }) => String(error))).toEqual(
        Array(3).fill(expect.stringMatching(/DNS_TSIG_NAME/)),
      );
      expect(await knot.serial()).toBe(before);
    });
  });

  describe('the environment', () => {
    beforeEach(async () => await writeFile(join(knot.dir, 'identity'), await generateIdentity()));
    const settings = () => ({
      SITES_REPO: 'sites.git',
      STATE_DIR: knot.dir,
      HOP_SECRET: 'a-hop-secret-of-some-length',
      AGE_IDENTITY_FILE: join(knot.dir, 'identity'),
      CLOUDFLARE_API_TOKEN: 'unused',
      CLOUDFLARE_ACCOUNT_ID: 'unused',
      CLOUDFLARE_ZONE_ID: 'unused',
      EDGE_DOMAIN: KNOT_ZONE,
      EDGE_UPSTREAM: 'https://127.0.0.1',
      HOST_ADDRESS: HOST,
      LOCAL_CA_DIR: join(knot.dir, 'ca'),
      CONTAINERS_DRIVER: 'process',
      PROXY_DRIVER: 'embedded',
      PROXY_LISTEN: '127.0.0.1',
      PROXY_HTTP_PORT: '0',
      PROXY_TLS_PORT: '0',
      DNS_PROVIDER: 'rfc2136',
      DNS_SERVER: `127.0.0.1:${knot.port}`,
      DNS_TSIG_NAME: 'tagyard',
      DNS_TSIG_SECRET_FILE: join(knot.dir, 'tagyard.secret'),
      EDGE_TARGET: ALIAS,
    });
    const buildFrom = async (env: Record<string, string>) => {
      const stack = new AsyncDisposableStack();
      cleanups.push(() => stack.disposeAsync());
      const log = { info: () => undefined, warn: () => undefined };
      return (await buildHost(readEnv(env), stack, { log, ordinal: async () => null })).appliers;
    };

    test('makes the daemon write to the server that it names', async () => {
      const dns = (await buildFrom(settings())).find(({ target }) => target === 'dns');
      if (dns === undefined) throw new Error('nothing applies DNS');
      const desired = dns.desired(acme);
      const { changes } = dns.plan(desired, await dns.observe(desired, signal));
      await Promise.all(changes.map((change) => dns.apply(change, signal)));
      expect(await knot.read('acme-shop', 'CNAME')).toEqual(['acme-shop.example.net.cdn.example.']);
      expect(await knot.read('acme-shop-origin', 'A')).toEqual([HOST]);
    });

    test.each(['DNS_SERVER', 'DNS_TSIG_NAME', 'DNS_TSIG_SECRET_FILE', 'EDGE_TARGET'])(
      'must name %s',
      async (name) => {
        await expect(buildFrom({ ...settings(), [name]: '' })).rejects.toThrow(name);
      },
    );

    test.each([
      ['127.0.0.1', { host: '127.0.0.1', port: 53 }],
      ['[2001:db8::53]', { host: '2001:db8::53', port: 53 }],
      ['[2001:db8::53]:5353', { host: '2001:db8::53', port: 5353 }],
      ['ns1.example.net:5353', { host: 'ns1.example.net', port: 5353 }],
    ])('reads DNS_SERVER=%s', (text, server) => {
      expect(readEnv({ ...settings(), DNS_SERVER: text }).DNS_SERVER).toEqual(server);
    });

    test.each([
      ['DNS_SERVER', '127.0.0.1:port'],
      ['DNS_SERVER', 'ns1.example.net/zone'],
      ['DNS_SERVER', 'ns1 zone'],
      ['DNS_TSIG_NAME', 'a:b'],
      ['DNS_TSIG_ALGORITHM', 'hmac-md5'],
      ['EDGE_TARGET', '{host}'],
      ['EDGE_TARGET', 'https://edge.example'],
    ])('refuses %s=%s', (name, text) => {
      expect(() => readEnv({ ...settings(), [name]: text })).toThrow(name);
    });
  });

  describe('the key', () => {
    test('is readable by its owner only, whatever the file’s mode was before', async () => {
      const path = join(knot.dir, 'again.key');
      await writeFile(path, 'old', { mode: 0o644 });
      const key = { name: 'tagyard', algorithm: 'hmac-sha256', secretFile: join(knot.dir, 'tagyard.secret') };
      await writeTsigKey(path, key);
      expect((await stat(path)).mode & 0o777).toBe(0o600);
      await writeFile(key.secretFile, 'not base64!');
      await expect(writeTsigKey(path, key)).rejects.toThrow(/Base64/);
    });

    test('has its secret on no argument list', async () => {
      const relay = await relayTo(0);
      const aborting = new AbortController();
      const observed = failure(
        applierOf({ port: relay.port, silenceSeconds: 60 }).observe([], aborting.signal),
      );
      const argv = await eventually(async () => {
        const found = (await argumentLists()).filter((list) => list.includes(knot.keyFile('tagyard')));
        expect(found).not.toEqual([]);
        return found.join('\n');
      });
      aborting.abort();
      await observed;
      expect(argv).not.toContain(knot.secretOf('tagyard'));
    });
  });
});

/** The current records of the names in the `add` lines. */
async function everything(knot: Knot, lines: readonly string[]): Promise<string[][]> {
  return Promise.all(
    lines.map((line) => {
      const [, name = '', , type = ''] = line.split(' ');
      return knot.read(name, type);
    }),
  );
}

async function argumentLists(): Promise<string[]> {
  const processes = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  // A process may end during the search.
  const lists = await Promise.allSettled(processes.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8')));
  return lists.flatMap((list) => (list.status === 'fulfilled' ? [list.value] : []));
}
