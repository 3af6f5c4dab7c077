import { afterAll, beforeAll, expect, test } from 'vitest';
import { TerminalError } from '../../../base/errors.ts';
import { tagyardHere } from '../../support/cli/in-process.ts';
import { eventually } from '../../support/eventually.ts';
import type { MemoryDaemon } from '../../support/gitops/memory-daemon.ts';
import { provisionedWorld } from '../../support/management/provisioned.ts';
import { creation, type World } from '../../support/management/world.ts';

let world: World;
let daemon: MemoryDaemon;
let close: () => Promise<void>;
beforeAll(async () => {
  ({ world, daemon, close } = await provisionedWorld({ logLevel: 'silent' }));
});
afterAll(() => close());

test('a creation that failed is a problem for status and doctor, although nothing of it is left', async () => {
  const url = daemon.app.listeningOrigin;
  const env = {
    MANAGEMENT_URL: await world.listen(),
    TAGYARD_TOKEN: await world.issuer.token('owner'),
  };
  const cli = async (...args: string[]) => await tagyardHere(url, args, env);
  const body = creation(await world.client());
  daemon.control.fault = (target, at) =>
    target === 'containers' && at !== 'observe'
      ? new TerminalError('the configuration is refused', { isOfSite: true })
      : undefined;
  const { id, siteId } = (await world.call('POST', '/server-containers', { as: 'owner', body })).body;
  await eventually(async () => {
    const shown = (await world.call('GET', `/server-containers/${id}`, { as: 'owner' })).body;
    expect(shown).toMatchObject({ status: 'failed', state: { name: 'failing' } });
  });
  daemon.control.fault = () => undefined;
  await daemon.reaches(siteId, 'Removed');

  for (const args of [['status'], ['status', siteId]]) {
    const { exitCode, stdout } = await cli(...args);
    expect(stdout).toMatch(new RegExp(`${siteId} +failing`));
    expect(exitCode).toBe(1);
  }
  const { exitCode, stdout } = await cli('doctor');
  expect(stdout).toContain('Setting it up failed, and nothing of it runs.');
  expect(stdout).toContain('0 of 1 site are well');
  expect(exitCode).toBe(1);
});
