import { afterAll, beforeAll, describe } from 'vitest';
import { describeWith } from '../../support/components.ts';
import { PostgresqlFixture } from '../../support/management/postgresql.ts';
import { openWorldsOn } from '../../support/management/world.ts';

/** The unit tests of management that use the database. In their own files, they run on the embedded database. */
const SUITES = {
  access: () => import('../../management/access.test.ts'),
  audit: () => import('../../management/audit.test.ts'),
  containers: () => import('../../management/containers.test.ts'),
  events: () => import('../../management/events.test.ts'),
  'forgetting keys': () => import('../../management/forget-keys.test.ts'),
  hardening: () => import('../../management/hardening.test.ts'),
  'host watch': () => import('../../management/host-watch.test.ts'),
  projection: () => import('../../management/projection.test.ts'),
  reading: () => import('../../management/reading.test.ts'),
  retention: () => import('../../management/retention.test.ts'),
  saga: () => import('../../management/saga.test.ts'),
  'failed projections': () => import('../../management/unprojected.test.ts'),
  clients: () => import('../../management/tenants/clients.test.ts'),
  invitations: () => import('../../management/tenants/invitations.test.ts'),
  'service tokens': () => import('../../management/tenants/tokens.test.ts'),
  verification: () => import('../../management/verification.test.ts'),
  webhooks: () => import('../../management/webhooks.test.ts'),
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
