import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, symlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type FaultyCloudflare, startFaultyCloudflare } from '../support/cloudflare/faulty.ts';
import { testWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { ask, lifeOf, standing } from '../support/faults/operations.ts';
import { converged, type Stage, stage } from '../support/faults/stage.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

/** Fills the disk. */
function fill(path: string): void {
  const file = openSync(path, 'w');
  try {
    for (;;) writeSync(file, Buffer.alloc(4096));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
  } finally {
    closeSync(file);
  }
}

describe('a daemon whose host fails', () => {
  let on: Stage;
  let faulty: FaultyCloudflare;
  beforeEach(async () => {
    on = await stage();
    faulty = await startFaultyCloudflare(on.gate.cloudflareUrl);
  });
  afterEach(async () => {
    await faulty.close();
    await on.close();
  });
  const start = () =>
    on.start({ cloudflare: { ...on.settings().cloudflare, url: faulty.url, timeoutMs: 1000 } });

  test('works while the disk of its state is full, and continues from the old state after it is killed', async () => {
    const [create, change] = lifeOf(['acme', 'beta'], on.manifest);
    if (create === undefined || change === undefined) throw new Error('lifeOf returned too few steps');
    const stateDir = join(on.dir, 'state');
    const before = await start();
    await ask(before, create.requests);
    await converged(before);
    const state = await eventually(() => readFileSync(join(stateDir, 'state.json'), 'utf8'));

    // Writes to this device fail with ENOSPC, as on a full disk (full(4)).
    mkdirSync(stateDir, { recursive: true });
    symlinkSync('/dev/full', join(stateDir, 'state.json.tmp'));
    expect(await ask(before, change.requests)).toEqual([]);
    await converged(before);
    await eventually(() => expect(before.output()).toContain('ENOSPC'));
    const changed = on.snapshot();
    expect(readFileSync(join(stateDir, 'state.json'), 'utf8')).toContain('"version":1');
    await before.kill();

    await using after = await start();
    await converged(after);
    expect(on.snapshot()).toEqual(changed);
    rmSync(join(stateDir, 'state.json.tmp'));
    await after.call('POST', '/sync');
    await eventually(() => expect(readFileSync(join(stateDir, 'state.json'), 'utf8')).not.toBe(state));
    expect(after.output().match(/escaped|unhandled/i)).toBeNull();
  });

  testWith(
    'mount',
    'changes nothing while its whole disk is full, and continues when there is space again',
    async () => {
      const disk = join(on.dir, 'disk');
      mkdirSync(disk);
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', disk]);
      try {
        // The mirror of the repository is on this disk too.
        await using daemon = await on.start({ sitesRepo: pathToFileURL(on.sitesRepo).href, stateDir: disk });
        const sites = ['acme', 'beta'];
        await on.push({ acme: on.manifest('acme', 0), beta: on.manifest('beta', 1) });
        await daemon.call('POST', '/sync');
        await eventually(async () => expect((await daemon.figures()).ready).toBe(sites.length));
        await converged(daemon);
        const before = on.snapshot();
        const state = await eventually(() => {
          const text = readFileSync(join(disk, 'state.json'), 'utf8');
          expect(text).toContain('beta');
          return text;
        });

        fill(join(disk, 'full'));
        await on.push({ acme: null, beta: on.manifest('beta', 1, { name: 'x'.repeat(100) }) });
        await daemon.call('POST', '/sync');
        await eventually(async () =>
          expect((await daemon.figures()).lastError).toMatch(
            /^git fetch: .*(No space left|Out of diskspace)/,
          ),
        );
        expect(await daemon.call('POST', '/provision', on.manifest('core', 2))).toMatchObject({
          status: 503,
        });
        expect((await daemon.sites()).sites.map(({ ready }) => ready)).toEqual([true, true]);
        expect(on.snapshot()).toEqual(before);
        expect(JSON.parse(readFileSync(join(disk, 'state.json'), 'utf8'))).toMatchObject({ version: 1 });
        expect(JSON.parse(state)).toMatchObject({ version: 1 });

        rmSync(join(disk, 'full'));
        await daemon.call('POST', '/sync');
        await eventually(async () => expect((await daemon.figures()).lastError).toBeNull(), {
          timeoutMs: 60_000,
        });
        await converged(daemon);
        await eventually(() => expect(standing(on.snapshot(), 'acme').dns).toBe(0));
        expect(standing(on.snapshot(), 'beta')).toEqual(standing(before, 'beta'));
      } finally {
        execFileSync('umount', ['--lazy', disk]);
      }
    },
  );

  test.each([
    ['back', -DAY_MS],
    ['forward', DAY_MS],
  ])('retries on time when the clock is set %s by a day', async (_way, by) => {
    await using daemon = await start();
    const [create] = lifeOf(['acme'], on.manifest);
    faulty.plan({ kind: 'refuse', status: 503 }, (method) => method !== 'GET', 3);
    expect(await ask(daemon, create?.requests ?? [])).toEqual([]);
    await eventually(async () =>
      expect((await daemon.sites()).sites).toMatchObject([{ reason: 'Retrying' }]),
    );
    daemon.setClock(by);
    // After three failures in a row, the pauses total at most seven seconds.
    await converged(daemon, 20_000);
    expect(faulty.faulted).toHaveLength(3);
    const calls = faulty.calls.length;
    await daemon.figures();
    expect(faulty.calls.length - calls).toBeLessThan(10);
  });
});
