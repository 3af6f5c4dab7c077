import { execFileSync } from 'node:child_process';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { converged, killAtCommit, type Stage, stage } from '../support/faults/stage.ts';
import { standby, startDaemon } from '../support/gitops/daemon.ts';

let on: Stage;
beforeEach(async () => {
  on = await stage();
});
afterEach(() => on.close());

const remote = () => ({ ...on.settings(), sitesRepo: pathToFileURL(on.sitesRepo).href });
const holder = () =>
  JSON.parse(
    execFileSync('git', ['-C', on.sitesRepo, 'show', 'refs/tagyard/hosts/tag-1:lease.json'], {
      encoding: 'utf8',
    }),
  );

test('a second daemon of one host refuses to start while the first one runs, and changes nothing', async () => {
  await on.push({ acme: on.manifest('acme', 0) });
  await using first = await startDaemon(remote());
  await converged(first);
  const before = on.snapshot();
  const second = startDaemon({ ...remote(), stateDir: join(on.dir, 'second') });
  await expect(second).rejects.toThrow(/another daemon acts as the host tag-1: process \d+ on/);
  expect(on.snapshot()).toEqual(before);
  await first.kill();
  await using next = await startDaemon({ ...remote(), stateDir: join(on.dir, 'second') });
  await converged(next);
  expect(holder()).toMatchObject({ term: 2, process: { pid: next.pid } });
  expect(on.snapshot()).toEqual(before);
});

test('a daemon that was refused does not act after a restart while git is away', async () => {
  await on.push({ acme: on.manifest('acme', 0) });
  await using first = await startDaemon(remote());
  await converged(first);
  const second = { ...remote(), stateDir: join(on.dir, 'second') };
  const refused = /another daemon acts as the host tag-1: process \d+ on/;
  await expect(startDaemon(second)).rejects.toThrow(refused);

  renameSync(on.sitesRepo, `${on.sitesRepo}.away`);
  const before = on.snapshot();
  await expect(startDaemon(second)).rejects.toThrow(refused);
  // Not even after the holder's end: without git, no daemon can take the lease.
  await first.kill();
  await expect(startDaemon(second)).rejects.toThrow(refused);
  expect(on.snapshot()).toEqual(before);
  // The holder itself may start again.
  await using again = await startDaemon(remote());
  await eventually(async () => expect((await again.figures()).ready).toBe(1));
  renameSync(`${on.sitesRepo}.away`, on.sitesRepo);
});

test('a daemon that has just taken the lease acts after a restart while git is away', async () => {
  await on.push({ acme: on.manifest('acme', 0) });
  const first = await startDaemon(remote());
  await converged(first);
  await first.kill();
  const second = { ...remote(), stateDir: join(on.dir, 'second') };
  const taken = await startDaemon(second);
  await taken.kill();
  renameSync(on.sitesRepo, `${on.sitesRepo}.away`);
  await using again = await startDaemon(second);
  await eventually(async () => expect((await again.figures()).ready).toBe(1));
  renameSync(`${on.sitesRepo}.away`, on.sitesRepo);
});

test('a daemon that is killed at any write for the host lease has it after its next start', async () => {
  await on.push({ acme: on.manifest('acme', 0) });
  const mirror = join(on.dir, 'state', 'sites.git');
  // The first daemon is killed before or after it writes its id, when it has no lease yet.
  for (const moment of ['before', 'after'] as const) {
    const child = standby();
    on.gate.watch(({ kind }, when) => kind === 'state' && when === moment && child.kill('SIGKILL'));
    await expect(startDaemon(remote(), child)).rejects.toThrow('ended before it listened');
  }
  on.gate.watch(() => false);
  const first = await startDaemon(remote());
  await converged(first);
  await first.kill();
  const world = on.snapshot();
  // Each start writes the lease: a commit in the mirror, then a push.
  for (const repository of [mirror, on.sitesRepo]) {
    for (const moment of ['before', 'after'] as const) {
      const child = standby();
      killAtCommit(repository, child.pid ?? Number.NaN, moment);
      const starting = startDaemon(remote(), child).catch(() => null);
      await eventually(() => expect(child.signalCode).toBe('SIGKILL'));
      await starting;
      const next = await startDaemon(remote());
      await converged(next);
      expect(holder()).toMatchObject({ term: 1, process: { pid: next.pid } });
      expect(on.snapshot()).toEqual(world);
      await next.kill();
    }
  }
});
