import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CertificateKeeper } from '../../../gitops/certificates/keeper.ts';
import { Ledger, type LedgerState } from '../../../gitops/certificates/ledger.ts';
import { Orders } from '../../../gitops/certificates/orders.ts';
import { CertificateStore } from '../../../gitops/certificates/store.ts';
import type { OrderLookup } from '../../../gitops/clients/dns-lookup.ts';
import type { DesiredState } from '../../../gitops/desired/desired-state.ts';
import { eventually } from '../../support/eventually.ts';
import { loadedManifest } from '../../support/manifest.ts';

const HOUR = 3_600_000;
const START = Date.UTC(2026, 10, 29);
const ADDRESS = '192.0.2.1';
/** The keeper checks 16 names at once. A site with as many custom domains has 18 names. */
const CUSTOM_DOMAINS = 16;

describe('the certificate keeper', () => {
  let home: string;
  let keeper: CertificateKeeper;
  /** The names that the keeper has resolved. */
  let resolved: Set<string>;
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'tagyard-keeper-'));
    resolved = new Set();
  });
  afterEach(async () => {
    await keeper.stop();
    await rm(home, { recursive: true, force: true });
  });

  /** A keeper whose orders all wait for a proxy that doesn't answer their challenges yet. */
  const open = async (
    resolve: (name: string) => Promise<string[]>,
    {
      known = null,
      now = Date.now,
      caa = async (owner) => ({ owner, issue: [] }),
    }: { known?: LedgerState | null; now?: () => number; caa?: OrderLookup['caa'] } = {},
  ) => {
    const store = new CertificateStore(join(home, 'names'));
    await store.prepare();
    const orders = new Orders({
      acme: {
        issue: () => Promise.reject(new Error('no order is expected')),
        caaIdentities: async () => ['ca.example'],
      },
      store,
      ledger: new Ledger(join(home, 'ledger.json')),
      known,
      perHour: 600,
      probe: (_host, signal) =>
        new Promise((resolve) => signal.addEventListener('abort', () => resolve('stopped'))),
      now,
      log: { info: () => undefined, warn: () => undefined },
    });
    const lookup: OrderLookup = {
      addresses(name) {
        resolved.add(name);
        return resolve(name);
      },
      alias: async () => null,
      caa,
    };
    const caaIdentities = async () => ['ca.example'];
    keeper = new CertificateKeeper({ store, orders, lookup, caaIdentities, addresses: [ADDRESS], now });
    keeper.start(() => undefined);
  };
  const desired = (site: string, customDomains: number): DesiredState => {
    const domains = Array.from({ length: customDomains }, (_, index) => `t${index}.${site}.example`);
    const manifest = loadedManifest(site, 0, { tls: { mode: 'acme' }, customDomains: domains });
    return {
      revision: site,
      sites: new Map([[site, { site, blob: site, manifest, stalled: null }]]),
      onOtherHosts: new Map(),
    };
  };

  test('checks every name, however many orders are waiting', async () => {
    await open(async () => [ADDRESS]);
    keeper.follow(desired('acme', CUSTOM_DOMAINS));
    await eventually(() => {
      const states = keeper.names('acme').map(({ verdict }) => verdict.state);
      expect(states).toEqual(Array.from({ length: CUSTOM_DOMAINS + 2 }, () => 'pending_certificate'));
    });
  });

  test('reports an unexpected error as the name’s reason, and checks the others', async () => {
    const known: LedgerState = {
      version: 1,
      budget: { tokens: 1, at: 0, limited: {} },
      // A time after the last date that JavaScript can represent.
      failures: { 't0.acme.example': { count: 1, message: 'refused', retryAt: 1e300 } },
    };
    await open(async () => [ADDRESS], { known });
    keeper.follow(desired('acme', 2));
    await eventually(() => {
      const reasons = Object.fromEntries(
        keeper.names('acme').map(({ host, verdict }) => [host, [verdict.state, verdict.reason]]),
      );
      expect(reasons).toMatchObject({
        't0.acme.example': ['pending_certificate', 'the check failed: Invalid time value'],
        't1.acme.example': ['pending_certificate', 'a certificate is being ordered'],
      });
    });
  });

  test('orders within minutes after a fix of what made the last order fail, not after its pause', async () => {
    let ahead = 0;
    let issue = ['other.example', ';'];
    const now = () => START + ahead;
    const known: LedgerState = {
      version: 1,
      budget: { tokens: 10, at: START, limited: {} },
      failures: { 'acme-origin.example.net': { count: 9, message: 'refused', retryAt: START + 6 * HOUR } },
    };
    await open(async () => [ADDRESS], { known, now, caa: async () => ({ owner: 'example.net', issue }) });
    const reasonOf = () =>
      keeper.names('acme').find(({ host }) => host === 'acme-origin.example.net')?.verdict.reason;
    keeper.follow(desired('acme', 0));
    await eventually(() =>
      expect(reasonOf()).toBe(
        'the CAA records of example.net let only other.example issue certificates: add the record example.net CAA 0 issue "ca.example"',
      ),
    );
    issue = ['other.example', 'ca.example'];
    ahead = HOUR / 10;
    keeper.follow(desired('acme', 0));
    await eventually(() => expect(reasonOf()).toBe('a certificate is being ordered'));
  });

  test('forgets a name and its timer when git no longer has the name', async () => {
    let ahead = 0;
    const checked: string[] = [];
    await open(
      async (name) => {
        checked.push(name);
        return ['192.0.2.9'];
      },
      { now: () => Date.now() + ahead },
    );
    keeper.follow(desired('acme', 1));
    await eventually(() => expect(keeper.names('acme')).toHaveLength(3));
    keeper.follow(desired('acme', 0));
    expect(keeper.names('acme').map(({ host }) => host)).not.toContain('t0.acme.example');
    // Now every name is due. Each new desired state starts the checks of due names.
    ahead = 86_400_000;
    checked.length = 0;
    keeper.follow(desired('beta', 0));
    keeper.follow(desired('acme', 0));
    await eventually(() => expect(new Set(checked)).toContain('acme-origin.example.net'));
    await eventually(() => expect(keeper.names('acme')).toHaveLength(2));
    expect(checked).not.toContain('t0.acme.example');
  });

  test('still checks other names after the names under check were removed', async () => {
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    await open(async (name) => {
      if (name.includes('acme')) await answered;
      return [ADDRESS];
    });
    keeper.follow(desired('acme', CUSTOM_DOMAINS));
    await eventually(() => expect(resolved.size).toBe(16));
    keeper.follow(desired('beta', 0));
    answer();
    await eventually(() => expect(keeper.names('beta')).toHaveLength(2));
  });
});
