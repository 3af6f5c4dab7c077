import { afterEach, expect, test } from 'vitest';
import type { Run } from '../gitops/cli/instance/run-schema.ts';
import { api } from './support/management/api.ts';
import { startUpstream } from './support/upstream.ts';

let management: Awaited<ReturnType<typeof startUpstream>>;
afterEach(() => management.close());

/** A management API whose container has these statuses, one each time that it is read, and keeps the last one. */
async function statuses(...all: readonly string[]) {
  let reads = 0;
  management = await startUpstream({
    handle(_request, response) {
      const status = all[Math.min(reads, all.length - 1)];
      reads += 1;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ status, statusReason: 'no host' }));
      return true;
    },
  });
  const url = `http://${management.address}:${management.port}`;
  const { reaches } = api({ management: { url }, demo: { token: 'token' } } as Run); // all that the wait reads
  return { reads: () => reads, reaches: (wanted: string) => reaches('one', wanted) };
}

test('the wait for a container’s status fails at the first answer that says failed', async () => {
  const container = await statuses('failed');
  await expect(container.reaches('active')).rejects.toThrow('one is failed: no host');
  expect(container.reads()).toBe(1);
});

test.each([
  ['the status active', ['provisioning', 'provisioning', 'active'], 'active', 3],
  ['the status failed', ['provisioning', 'failed'], 'failed', 2],
] as const)('a container is waited for until it has %s', async (_name, all, wanted, reads) => {
  const container = await statuses(...all);
  expect(await container.reaches(wanted)).toMatchObject({ status: wanted });
  expect(container.reads()).toBe(reads);
});
