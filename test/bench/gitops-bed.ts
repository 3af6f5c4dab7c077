import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { z } from 'zod';
import { formatManifest } from '../../sites/manifest/load.ts';
import type { ManifestInput } from '../../sites/manifest/schema.ts';
import { encryptFor, encryptSecret } from '../../sites/manifest/secrets.ts';
import { initSitesRepo } from '../../sites/repo/mirror.ts';
import { openSitesRepo, type SitesRepo } from '../../sites/repo/sites-repo.ts';
import { EMULATOR_SCRIPT, EMULATOR_TOKEN, EMULATOR_ZONE } from '../support/cloudflare/emulator.ts';
import { type RunningDaemon, standby, startDaemon } from '../support/gitops/daemon.ts';
import { startGate } from '../support/gitops/gate.ts';
import { manifestInput } from '../support/manifest.ts';

const EMULATOR = fileURLToPath(new URL('gitops-emulator.ts', import.meta.url));
const author = { name: 'Bench', email: 'bench@example.net' };
const emulatorAnswer = z.object({ url: z.string(), account: z.string(), zoneId: z.string() });
const emulatorCalls = z.object({ calls: z.array(z.string()) });

export interface TestBed extends AsyncDisposable {
  readonly dir: string;
  readonly repo: SitesRepo;
  readonly cloudflare: z.infer<typeof emulatorAnswer>;
  manifest(number: number, extra?: Partial<ManifestInput>): ManifestInput;
  /** Commits the sites from number `from` up to, but not including, `to`. Returns the revision. */
  push(from: number, to: number): Promise<string>;
  /** Commits another loader token for a site. Returns the revision. */
  change(number: number): Promise<string>;
  start(): Promise<RunningDaemon>;
  /** The calls to Cloudflare since the last `calls()`. */
  calls(): Promise<string[]>;
  /** The next `calls()` returns these calls again. */
  putBack(calls: readonly string[]): void;
}

/** A sites repository, and a Cloudflare emulator in its own process. `start()` starts a daemon that uses both. */
export async function testBed(withWorld = false): Promise<TestBed> {
  await using stack = new AsyncDisposableStack();
  const dir = mkdtempSync(join(tmpdir(), 'tagyard-bench-'));
  stack.defer(() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 }));
  const emulator = fork(EMULATOR, { execArgv: [] });
  stack.defer(() => end(emulator));
  const { url, account, zoneId } = emulatorAnswer.parse((await once(emulator, 'message'))[0]);
  const gate = await startGate(url);
  stack.defer(() => gate.close());
  const sitesRepo = join(dir, 'sites.git');
  await initSitesRepo(sitesRepo);
  const repo = await openSitesRepo({ url: sitesRepo, cacheDir: dir });
  const ageIdentity = await generateIdentity();
  const recipient = await identityToRecipient(ageIdentity);
  const cipher = await encryptSecret(recipient, 'aWQ9R1RNLVg=');
  const held: string[] = [];
  let changes = 0;

  const manifest = (number: number, extra: Partial<ManifestInput> = {}): ManifestInput => ({
    ...manifestInput(`site-${number}`, number % 10_000, { containerConfig: cipher }),
    ...extra,
  });
  /** As the API makes them, of a client each: every secret is another one, and bound to its container. */
  const commit = async (manifests: readonly ManifestInput[]) => {
    const texts = await Promise.all(
      manifests.map(async (one) => {
        const config = Buffer.from(`id=GTM-${one.site}&env=1&auth=secret`).toString('base64');
        const containerConfig = await encryptFor(recipient, one.container, config);
        return { site: one.site, text: formatManifest({ ...one, client: one.container, containerConfig }) };
      }),
    );
    const done = await Promise.all(
      texts.map(({ site, text }) =>
        repo.commit({
          site,
          edit: () => text,
          subject: `Change ${site}`,
          author,
          trailers: { Site: site },
        }),
      ),
    );
    return done.at(-1)?.revision ?? '';
  };
  const owned = stack.move();
  return {
    dir,
    repo,
    cloudflare: { url, account, zoneId },
    manifest,
    push: (from, to) => commit(Array.from({ length: to - from }, (_, index) => manifest(from + index))),
    change(number) {
      changes += 1;
      return commit([
        manifest(number, { loaderToken: `lt_changed0token${String(changes).padStart(4, '0')}` }),
      ]);
    },
    start: () =>
      startDaemon(
        {
          sitesRepo,
          stateDir: join(dir, 'state'),
          instance: 'bench',
          host: 'tag-1',
          ageIdentity,
          secret: 'an infra secret',
          worldUrl: withWorld ? gate.url : null,
          env: { EDGE_ROUTE_MODE: 'wildcard', DNS_RECORD_MODE: 'site' },
          cloudflare: {
            url,
            token: EMULATOR_TOKEN,
            accountId: account,
            zone: EMULATOR_ZONE,
            zoneId,
            script: EMULATOR_SCRIPT,
          },
        },
        standby({ memory: 'production' }),
      ),
    async calls() {
      const answer = once(emulator, 'message');
      emulator.send('calls');
      return [...held.splice(0), ...emulatorCalls.parse((await answer)[0]).calls];
    },
    putBack: (calls) => void held.push(...calls),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function end(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}
