import type { ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { expect } from 'vitest';
import { z } from 'zod';
import { type ApiLimits, REAL_LIMITS } from '../../../sites/local/cloudflare/api/limits.ts';
import { formatManifest } from '../../../sites/manifest/load.ts';
import type { ManifestInput } from '../../../sites/manifest/schema.ts';
import { encryptSecret } from '../../../sites/manifest/secrets.ts';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { openSitesRepo } from '../../../sites/repo/sites-repo.ts';
import { EMULATOR_SCRIPT, EMULATOR_TOKEN, EMULATOR_ZONE, startEmulator } from '../cloudflare/emulator.ts';
import { eventually } from '../eventually.ts';
import { type RunningDaemon, standby, startDaemon } from '../gitops/daemon.ts';
import { startGate } from '../gitops/gate.ts';
import type { DaemonSettings } from '../gitops/settings.ts';
import { manifestInput } from '../manifest.ts';
import { movableClock } from '../movable-clock.ts';
import { pathWithHooks } from '../path-with-hooks.ts';

/** Rows as SQLite answers them; their columns differ by statement. */
const rows = z.array(z.record(z.string(), z.unknown()));

/** What foreign records with structured data say. */
const SERVICE = { priority: 1, weight: 5, port: 443, target: 'tags.example.net' };
const AUTHORITY = { flags: 0, tag: 'issue', value: 'ca.example.net' };
const BINDING = { priority: 1, target: '.', value: 'alpn="h2"' };

const KV_ROWS = `SELECT n.title, k.name, k.value, k.metadata FROM kv k JOIN namespaces n ON n.id = k.namespace
  WHERE true`;
/** What the worker doesn't see yet. */
const PENDING_ROWS = `SELECT n.title, p.name, p.value, p.metadata FROM kv_pending p JOIN namespaces n ON n.id = p.namespace
  WHERE p.value IS NOT NULL`;
const IS_NOT_PENDING =
  'NOT EXISTS (SELECT 1 FROM kv_pending p WHERE p.namespace = k.namespace AND p.name = k.name)';

/** The daemon's settings in each mode: none, as in a new instance, or those for a route and records for each site. */
const MODES = { auto: {}, site: { EDGE_ROUTE_MODE: 'site', DNS_RECORD_MODE: 'site' } } as const;
export type Mode = keyof typeof MODES;

interface StageOptions {
  /** `auto`: the zone is the instance's own, so a wildcard route and a wildcard record serve all sites. */
  readonly mode?: Mode;
  readonly limits?: Partial<ApiLimits>;
}

/**
 * The world of a daemon, outside the daemon's process, so that it outlives a kill. Its Cloudflare has the real limits of a
 * new free zone, and its worker sees KV writes as late as a real one does.
 */
export async function stage({ mode = 'auto', limits: overridden = {} }: StageOptions = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'tagyard-faults-'));
  const clock = movableClock();
  const limits = { ...REAL_LIMITS, ...overridden };
  const emulator = await startEmulator({ clock, limits });
  const names = new Map([...emulator.namespaces].map(([name, { id }]) => [id, name]));
  const gate = await startGate(emulator.url, names);
  const sitesRepo = join(dir, 'sites.git');
  await initSitesRepo(sitesRepo);
  const { PATH } = process.env;
  // For `killAtCommit`, in this process and the daemons that it starts.
  process.env.PATH = pathWithHooks(dir);
  const ageIdentity = await generateIdentity();
  const recipient = await identityToRecipient(ageIdentity);
  const cipher = await encryptSecret(recipient, 'aWQ9R1RNLVg=');
  const repo = await openSitesRepo({ url: sitesRepo, cacheDir: dir });

  const settings = (): DaemonSettings => ({
    sitesRepo,
    stateDir: join(dir, 'state'),
    instance: 'test',
    host: 'tag-1',
    ageIdentity,
    secret: 'an infra secret',
    worldUrl: gate.url,
    cloudflare: {
      url: gate.cloudflareUrl,
      token: EMULATOR_TOKEN,
      accountId: emulator.account,
      zone: EMULATOR_ZONE,
      zoneId: emulator.zone.id,
      script: EMULATOR_SCRIPT,
      timeoutMs: 2000,
    },
    env: MODES[mode],
  });
  let next: ChildProcess | undefined;
  const select = (sql: string) => rows.parse(emulator.db.prepare(sql).all());

  /** All resources in one order, without ids and times: equal worlds have equal snapshots. */
  const snapshot = () => ({
    containers: sorted(gate.world.containers ?? []),
    proxy: sorted(gate.world.proxy ?? []),
    kv: select(`${KV_ROWS} AND ${IS_NOT_PENDING} UNION ALL ${PENDING_ROWS} ORDER BY 1, 2`),
    routes: select('SELECT pattern, script FROM routes ORDER BY 1'),
    dns: select(
      `SELECT name, type, content, json_extract(body, '$.proxied') AS proxied, json_extract(body, '$.comment') AS comment
       FROM records ORDER BY 1, 2, 3`,
    ),
  });

  const workerKv = () => select(`${KV_ROWS} ORDER BY 1, 2`);

  return {
    dir,
    emulator,
    gate,
    repo,
    sitesRepo,
    recipient,
    mode,
    snapshot,
    settings,
    /** The documents that the worker reads: those of `snapshot`, but after Cloudflare's delay. */
    workerKv,
    /** Moves Cloudflare's clock until the worker must see every write, and checks that it does. */
    async expectDelivered(): Promise<void> {
      clock.advance(limits.kvDelayMs);
      await eventually(() => expect(workerKv()).toEqual(snapshot().kv));
    },
    /** Moves Cloudflare's clock past the window of the call limit: suites make the calls of days within seconds. */
    nextWindow: (): void => clock.advance(limits.calls.seconds * 1000),
    manifest: (site: string, number: number, extra: Partial<ManifestInput> = {}): ManifestInput =>
      manifestInput(site, number, { containerConfig: cipher, ...extra }),
    /** Loads the code of the next daemon while the current one runs, because loading is the slowest part of a start. */
    prepare(): void {
      next ??= standby();
    },
    start(extra: Partial<DaemonSettings> = {}): Promise<RunningDaemon> {
      const child = next;
      next = undefined;
      return startDaemon({ ...settings(), ...extra }, child);
    },
    /** Commits files as an operator would, in one push; `null` deletes a file. */
    push: (files: Readonly<Record<string, ManifestInput | string | null>>) =>
      Promise.all(
        Object.entries(files).map(([site, file]) =>
          repo.commit({
            site,
            edit: () => (file === null || typeof file === 'string' ? file : formatManifest(file)),
            subject: `Change ${site}`,
            author: { name: 'Operator', email: 'operator@example.net' },
            trailers: {},
          }),
        ),
      ),
    /** Deletes the wildcards, so that the next creation is like the first one in its zone. */
    forgetWildcards(): void {
      emulator.db.exec(
        "DELETE FROM routes WHERE pattern LIKE '*%'; DELETE FROM records WHERE name LIKE '*%'",
      );
    },
    /**
     * Adds foreign resources, with names of their own and with names that Tagyard uses. Others' names
     * and routes that keep an instance from wildcards are added only in a shared zone.
     */
    async plantForeign() {
      const zone = `/zones/${emulator.zone.id}`;
      const kv = (name: 'ROUTES' | 'EDGE_CONFIG') =>
        `/accounts/${emulator.account}/storage/kv/namespaces/${emulator.namespaces.get(name)?.id}`;
      const planted = [
        ['POST', `${zone}/dns_records`, { type: 'TXT', name: 'acme', content: '"google-site=1"' }],
        ['POST', `${zone}/dns_records`, { type: 'SRV', name: '_tags._tcp.acme', data: SERVICE }],
        ['POST', `${zone}/dns_records`, { type: 'CAA', name: 'acme-origin', data: AUTHORITY }],
        ['POST', `${zone}/dns_records`, { type: 'HTTPS', name: 'acme', data: BINDING }],
        ['POST', `${zone}/dns_records`, { type: 'AAAA', name: 'other', content: '100::', ...OTHER_EDGE }],
        ...(mode === 'auto' ? [] : inSharedZone(zone)),
        ['PUT', `${kv('ROUTES')}/bulk`, [{ key: 'www.example.net', value: '{}' }]],
        ['PUT', `${kv('EDGE_CONFIG')}/bulk`, [{ key: 'theirs', value: '{}', metadata: { by: 'x' } }]],
      ] as const;
      for (const [method, path, body] of planted) {
        const { status, text } = await emulator.call(method, path, body);
        if (status !== 200) throw new Error(`${method} ${path}: ${text}`);
      }
      gate.world.containers?.set('theirs', { mark: null, hash: 'x' });
      gate.world.containers?.set('of-another-host', { mark: OTHER, hash: 'x' });
      gate.world.proxy?.set('theirs', { mark: '# by hand', hash: 'x' });
    },
    async close() {
      process.env.PATH = PATH;
      next?.kill('SIGKILL');
      await gate.close();
      await emulator.close();
      rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

export type Stage = Awaited<ReturnType<typeof stage>>;
export type Snapshot = ReturnType<Stage['snapshot']>;

/** The mark of another host of the instance. */
const OTHER = 'tgy1 test tag-2 other 0123abcd';
const OTHER_EDGE = { proxied: true, comment: OTHER };

/** Others' names and routes, which keep a new instance from wildcards. */
function inSharedZone(zone: string) {
  return [
    ['POST', `${zone}/dns_records`, { type: 'A', name: 'www', content: '192.0.2.1', proxied: true }],
    [
      'POST',
      `${zone}/dns_records`,
      { type: 'A', name: 'other-origin', content: '192.0.2.2', comment: OTHER },
    ],
    ['POST', `${zone}/workers/routes`, { pattern: 'www.example.net/*', script: EMULATOR_SCRIPT }],
    ['POST', `${zone}/workers/routes`, { pattern: 'plain.example.net/*' }],
  ] as const;
}

/** Waits until no change is left, nothing is blocked and every site is ready. */
export async function converged(daemon: RunningDaemon, timeoutMs = 60_000): Promise<void> {
  await eventually(
    async () => {
      const { sites } = await daemon.sites();
      const off = sites.find(({ ready }) => !ready);
      if (off !== undefined) throw new Error(`${off.site}: ${off.reason} ${off.message}\n${daemon.output()}`);
      const { changes, blocked } = await daemon.plan();
      if (changes.length + blocked.length > 0) throw new Error(JSON.stringify({ changes, blocked }));
    },
    { timeoutMs, intervalMs: 25, until: () => daemon.exited() },
  );
}

/** Waits for a full pass that begins after the call: the first one to end may have begun before. */
export async function fullPass(daemon: RunningDaemon): Promise<void> {
  for (let pass = 0; pass < 2; pass += 1) {
    const { passes } = await daemon.figures();
    await daemon.call('POST', '/sync');
    await eventually(async () => expect((await daemon.figures()).passes).toBeGreaterThan(passes));
  }
}

const SIGNAL_COMMAND = fileURLToPath(new URL('../signal-command.ts', import.meta.url));

/**
 * Installs a hook in the sites repository that kills `pid` just before a commit is made (then the commit fails), or
 * just after. Git runs the hook during the commit: githooks(5), reference-transaction.
 */
export function killAtCommit(sitesRepo: string, pid: number, moment: 'before' | 'after'): void {
  const hook = join(sitesRepo, 'hooks', 'reference-transaction');
  const state = moment === 'before' ? 'prepared' : 'committed';
  writeFileSync(
    hook,
    `#!/bin/sh\n[ "$1" = ${state} ] || exit 0\nrm -f hooks/reference-transaction\n${process.execPath} ${SIGNAL_COMMAND} ${process.pid} ${pid} SIGKILL\n[ "$1" = committed ]\n`,
  );
  chmodSync(hook, 0o755);
}

function sorted<Value>(entries: Iterable<[string, Value]>): [string, Value][] {
  return [...entries].sort(([a], [b]) => (a < b ? -1 : 1));
}
