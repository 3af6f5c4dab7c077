import { mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { type FaultyCloudflare, startFaultyCloudflare } from '../helpers/faulty-cloudflare.ts';
import { ask, lifeOf } from './operations.ts';
import { converged, type Stage, stage } from './stage.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

describe('a daemon whose host misbehaves', () => {
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

  it('works on with a full disk under its state, and goes on from the old state when it is killed then', async () => {
    const [create, change] = lifeOf(['acme', 'beta'], on.manifest);
    if (create === undefined || change === undefined) throw new Error('a life begins with these');
    const stateDir = join(on.dir, 'state');
    const before = await start();
    await ask(before, create.requests);
    await converged(before);
    const state = await eventually(() => readFileSync(join(stateDir, 'state.json'), 'utf8'));

    // What is written to this device ends with ENOSPC, as on a full disk: null(4).
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

  it.each([
    ['back', -DAY_MS],
    ['on', DAY_MS],
  ])('tries again in time when the clock is set %s by a day', async (_way, by) => {
    await using daemon = await start();
    const [create] = lifeOf(['acme'], on.manifest);
    faulty.plan({ kind: 'refuse', status: 503 }, (method) => method !== 'GET', 3);
    expect(await ask(daemon, create?.requests ?? [])).toEqual([]);
    await eventually(async () =>
      expect((await daemon.sites()).sites).toMatchObject([{ reason: 'Retrying' }]),
    );
    daemon.setClock(by);
    // Three failures in a row wait seven seconds at most.
    await converged(daemon, 20_000);
    expect(faulty.faulted).toHaveLength(3);
    const calls = faulty.calls.length;
    await daemon.figures();
    expect(faulty.calls.length - calls).toBeLessThan(10);
  });
});
