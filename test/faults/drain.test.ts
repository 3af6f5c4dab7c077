import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { ask, standing } from '../support/faults/operations.ts';
import { converged, fullPass, type Mode, type Stage, stage } from '../support/faults/stage.ts';
import type { RunningDaemon } from '../support/gitops/daemon.ts';
import type { Moment } from '../support/gitops/gate.ts';

const WHOLE = { containers: 2, proxy: 1, kv: 4, routes: 1, dns: 3 };
const NOTHING = { containers: 0, proxy: 0, kv: 0, routes: 0, dns: 0 };
const HOUR = 3_600;
const DNS = /dns_records/;

const MODES: readonly Mode[] = ['auto', 'site'];

describe.each(MODES)('a drain with the route and records of the mode %s', (mode) => {
  // A wildcard route counts for a site only while the site's edge hostname has a record (see `standing`).
  const DRAINING = { ...WHOLE, routes: mode === 'auto' ? 0 : 1, dns: 0 };
  let on: Stage;
  let daemon: RunningDaemon;
  beforeEach(async () => {
    on = await stage({ mode });
    await on.plantForeign();
  });
  afterEach(async () => {
    await daemon?.kill();
    await on?.close();
  });
  const start = async (extra: Parameters<Stage['start']>[0]) => {
    daemon = await on.start(extra);
  };
  const create = async (site: string) => {
    await ask(daemon, [{ method: 'POST', path: '/provision', body: on.manifest(site, site.length) }]);
    await converged(daemon);
    expect(standing(on.snapshot(), site)).toEqual(WHOLE);
  };
  const remove = (site: string) => ask(daemon, [{ method: 'POST', path: '/deprovision', body: { site } }]);
  const known = () => {
    const { sites } = JSON.parse(readFileSync(join(on.dir, 'state', 'state.json'), 'utf8'));
    return sites.find(({ site }: { site: string }) => site === 'acme');
  };
  const withdrawnAt = () => known()?.withdrawnAt;

  test('keeps its deadline through kills, and through a clock that jumps', async () => {
    await start({ drainSeconds: HOUR });
    await create('acme');
    expect(await remove('acme')).toEqual([]);
    const since = await eventually(() => {
      expect(withdrawnAt()).toBeDefined();
      return withdrawnAt();
    });
    for (const clockMs of [0, (HOUR - 60) * 1000, -24 * HOUR * 1000]) {
      on.prepare();
      await daemon.kill();
      await start({ drainSeconds: HOUR, clockMs });
      await fullPass(daemon);
      expect(standing(on.snapshot(), 'acme'), `${clockMs}`).toEqual(DRAINING);
      expect(withdrawnAt()).toBe(since);
      // Once this daemon has taken up the drain, a change of the wall clock doesn't shorten it.
      daemon.setClock(48 * HOUR * 1000);
      await fullPass(daemon);
      expect(standing(on.snapshot(), 'acme'), `${clockMs}, and on`).toEqual(DRAINING);
    }
    await daemon.kill();
    await start({ drainSeconds: HOUR, clockMs: (HOUR + 1) * 1000 });
    await converged(daemon);
    expect(standing(on.snapshot(), 'acme')).toEqual(NOTHING);
  });

  test('is never cut short by a kill at its start or end, and all else is removed after it', async () => {
    const drainSeconds = 1;
    await start({ drainSeconds });
    await create('stays');
    const cuts: readonly [what: string, isCut: (label: string, moment: Moment) => boolean][] = [
      ['before the records are removed', (label, moment) => DNS.test(label) && moment === 'before'],
      ['once they are removed', (label, moment) => DNS.test(label) && moment === 'after'],
      ['before the next resource is removed', (label, moment) => !DNS.test(label) && moment === 'before'],
      ['once that is removed', (label, moment) => !DNS.test(label) && moment === 'after'],
    ];
    for (const [what, isCut] of cuts) {
      on.gate.watch(() => false);
      await create('acme');
      // Once the site is ready, the daemon has discarded the state of the site's previous life.
      await eventually(() => expect(known()).toMatchObject({ reason: 'Ready' }));
      expect(known().withdrawnAt).toBeUndefined();
      on.prepare();
      let killed = false;
      let goneAt = Number.POSITIVE_INFINITY;
      const early: string[] = [];
      on.gate.watch(({ kind, label }, moment) => {
        if (kind !== 'world') return false;
        if (DNS.test(label) && moment === 'after') goneAt = performance.now();
        const drained = performance.now() - goneAt;
        // Timers may fire a little early.
        if (!DNS.test(label) && !(drained >= drainSeconds * 990)) early.push(`${label} after ${drained} ms`);
        if (killed || !isCut(label, moment)) return false;
        killed = true;
        daemon.child.kill('SIGKILL');
        return true;
      });
      await remove('acme');
      await eventually(() => expect(daemon.exited()).toBe(true));
      const left = standing(on.snapshot(), 'acme');
      if (what === 'before the records are removed') expect(left).toEqual(WHOLE);
      else if (what !== 'once that is removed') expect(left).toEqual(DRAINING);
      await start({ drainSeconds });
      await converged(daemon);
      expect(early, what).toEqual([]);
      expect(standing(on.snapshot(), 'acme'), what).toEqual(NOTHING);
      expect(standing(on.snapshot(), 'stays'), what).toEqual(WHOLE);
      await on.expectDelivered();
    }
  });
});
