import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { REASONS, type Reason } from '../../gitops/report/report.ts';
import { verdictOf } from '../../management/sites/host-watch.ts';
import { eventually } from '../support/eventually.ts';
import { creation, World } from '../support/management/world.ts';

const VERDICTS: Record<Reason, 'well' | 'suspended' | 'refused' | 'trouble' | 'silent'> = {
  Ready: 'well',
  Progressing: 'silent',
  Retrying: 'trouble',
  QuotaReached: 'trouble',
  Failed: 'trouble',
  ObserveFailed: 'trouble',
  InvalidManifest: 'refused',
  UnsupportedVersion: 'refused',
  UndecryptableConfig: 'refused',
  NameTaken: 'refused',
  Conflict: 'trouble',
  Suspended: 'suspended',
  Blocked: 'trouble',
  Frozen: 'trouble',
  CertificatePending: 'trouble',
  SourceUnavailable: 'well',
  NotIsolated: 'trouble',
  Unhealthy: 'trouble',
  Drifted: 'trouble',
  RepairLoop: 'trouble',
  Removing: 'silent',
  Removed: 'silent',
};

test.each(Object.keys(REASONS) as Reason[])(
  'the reason %s of a site decides what is said of its container',
  (reason) => {
    const detail =
      reason === 'QuotaReached'
        ? 'there is no room for the site at the moment; only the operator can make room'
        : `${reason}: why`;
    const verdict = verdictOf({
      site: 'a',
      ready: false,
      reason,
      message: 'why',
      conditions: [],
    });
    expect(verdict).toEqual(
      {
        well: { obstacle: null, refusal: null },
        suspended: { obstacle: { reason: 'suspended', detail: 'why' }, refusal: null },
        refused: { obstacle: { reason: 'host_refused', detail }, refusal: detail },
        trouble: { obstacle: { reason: 'host_trouble', detail }, refusal: null },
        silent: null,
      }[VERDICTS[reason]],
    );
  },
);

test('a site that is suspended is well, although it isn’t ready while changes wait', () => {
  const said = {
    site: 'a',
    ready: false,
    reason: 'Suspended',
    message: '1 change is pending',
    conditions: [],
  };
  const obstacle = { reason: 'suspended', detail: '1 change is pending' };
  expect(verdictOf(said)).toEqual({
    obstacle,
    refusal: null,
  });
});

test.each([
  [
    'a preview server that fails',
    'preview_failed',
    { reason: 'host_partial', detail: 'preview_failed: why' },
  ],
  ['a limit of the provider', 'quota_reached', null],
])('of a site that is ready, what is said of the condition of %s', (_what, condition, obstacle) => {
  const conditions = [{ condition, message: 'why' }];
  const said = { site: 'a', ready: true, reason: 'Ready', message: '', conditions };
  expect(verdictOf(said)).toEqual({ obstacle, refusal: null });
});

describe('trouble on the host', () => {
  let world: World;
  let id: string;
  let site: string;
  beforeAll(async () => {
    world = await World.open();
    const body = creation(await world.client());
    ({ id, siteId: site } = (await world.call('POST', '/server-containers', { as: 'owner', body })).body);
    await shows({ status: 'active', health: 'healthy', statusReason: null });
  });
  afterAll(() => world.close());

  const shows = (expected: object) =>
    eventually(async () => {
      const { body } = await world.call('GET', `/server-containers/${id}`, { as: 'viewer' });
      expect(body).toMatchObject(expected);
    });
  const says = (reason: Reason, message = '') => world.provisioner.sites.set(site, { reason, message });

  test('shows on the container with its message, until the host is healthy again', async () => {
    says('Failed', 'containers processing: exited with code 1');
    const statusDetail = 'Failed: containers processing: exited with code 1';
    await shows({ status: 'active', health: 'degraded', statusReason: 'host_trouble', statusDetail });
    says('Progressing');
    says('Ready');
    await shows({ status: 'active', health: 'healthy', statusReason: null, statusDetail: null });
    const { body } = await world.call('GET', `/server-containers/${id}/events`, { as: 'viewer' });
    const host = body.events.filter((event: { kind: string }) => event.kind === 'host');
    expect(host.slice(-2)).toMatchObject([
      { reason: 'host_trouble', detail: statusDetail },
      { reason: null },
    ]);
  });

  test('is shown after a restart if it began meanwhile, and no longer if it ended meanwhile', async () => {
    await world.stop();
    says('Retrying', 'the image can’t be pulled');
    await world.start();
    await shows({ health: 'degraded', statusDetail: 'Retrying: the image can’t be pulled' });
    await world.stop();
    says('Ready');
    await world.start();
    await shows({ health: 'healthy', statusReason: null });
  });

  test('includes a suspension, at first with a general text, and later with the changes that wait', async () => {
    const text = (await world.file(site)) ?? '';
    const commit = (edited: string) =>
      world.repo.commit({
        site,
        subject: 'By hand',
        author: { name: 'Olga', email: 'olga@example.test' },
        trailers: {},
        edit: () => edited,
      });
    await shows({ suspended: false, statusReason: null });
    await commit(`${text}suspend: true\n`);
    await shows({ suspended: true, statusReason: 'suspended', health: 'healthy' });
    const body = { name: 'Renamed' };
    const changed = await world.call('PATCH', `/server-containers/${id}`, { as: 'owner', body });
    expect(changed.body).toMatchObject({
      name: 'Renamed',
      suspended: true,
      statusReason: 'suspended',
      statusDetail: expect.stringContaining('wait until the site is resumed'),
    });
    const pending = '1 change is pending: processing server of Renamed';
    says('Suspended', pending);
    await shows({ statusReason: 'suspended', statusDetail: pending, health: 'healthy' });
    await commit(((await world.file(site)) ?? '').replace('suspend: true\n', ''));
    says('Ready');
    await shows({ suspended: false, statusReason: null, statusDetail: null });
  });

  test('doesn’t hide that the newest manifest isn’t applied', async () => {
    const text = (await world.file(site)) ?? '';
    const commit = (edited: string) =>
      world.repo.commit({
        site,
        subject: 'By hand',
        author: { name: 'Olga', email: 'olga@example.test' },
        trailers: {},
        edit: () => edited,
      });
    await commit(text.replace(/^name: .*/m, 'nmae: Typo'));
    await shows({ statusReason: 'invalid_manifest' });
    says('Failed', 'exited');
    await shows({ health: 'degraded', statusReason: 'invalid_manifest' });
    await commit(text);
    await shows({ health: 'degraded', statusReason: 'host_trouble', statusDetail: 'Failed: exited' });
    says('Ready');
    await shows({ health: 'healthy', statusReason: null });
  });
});
