import { afterAll, beforeAll, describe } from 'vitest';
import { describeWith } from '../../support/components.ts';
import { PostgresqlFixture } from '../../support/management/postgresql.ts';
import { openWorldsOn } from '../../support/management/world.ts';

/** The unit tests of management that use the database. In their own files, they run on the embedded database. */
const SUITES = {
  access: () => import('../../management/access.daemon.test.ts'),
  audit: () => import('../../management/audit.daemon.test.ts'),
  containers: () => import('../../management/containers.daemon.test.ts'),
  events: () => import('../../management/events.daemon.test.ts'),
  'forgetting keys': () => import('../../management/forget-keys.slow.test.ts'),
  hardening: () => import('../../management/hardening.slow.test.ts'),
  'host watch': () => import('../../management/host-watch.slow.test.ts'),
  projection: () => import('../../management/projection.slow.test.ts'),
  reading: () => import('../../management/reading.daemon.test.ts'),
  retention: () => import('../../management/retention.daemon.test.ts'),
  saga: () => import('../../management/saga.slow.test.ts'),
  'failed projections': () => import('../../management/unprojected.slow.test.ts'),
  clients: () => import('../../management/tenants/clients.daemon.test.ts'),
  invitations: () => import('../../management/tenants/invitations.daemon.test.ts'),
  'service tokens': () => import('../../management/tenants/tokens.daemon.test.ts'),
  verification: () => import('../../management/verification.daemon.test.ts'),
  webhooks: () => import('../../management/webhooks.daemon.test.ts'),
};

describeWith('postgresql', 'the same suites on PostgreSQL, with a role that owns nothing', () => {
  let postgresql: PostgresqlFixture;
  let undo: (() => void) | undefined;
  beforeAll(async () => {
    postgresql = await PostgresqlFixture.start();
    undo = openWorldsOn(() => postgresql.connections());
  });
  afterAll(async () => {
    undo?.();
    await postgresql?.stop();
  });

  for (const [name, suite] of Object.entries(SUITES)) describe(name, async () => void (await suite()));
});
