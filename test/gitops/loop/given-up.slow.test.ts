import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { GivenUpError } from '../../../base/errors.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';

let daemon: MemoryDaemon;
beforeEach(async () => {
  daemon = await memoryDaemon();
});
afterEach(() => daemon.close());

describe('a site that was given up', () => {
  let attempts: number;
  beforeEach(async () => {
    attempts = 0;
    daemon.control.before = ({ site, target, op }) => {
      if (site !== 'bad' || target !== 'containers' || op === 'delete') return;
      attempts += 1;
      throw new GivenUpError('it never starts');
    };
    await daemon.push('bad', daemon.manifest('bad', 1));
    await daemon.reaches('bad', 'Failed');
  });

  test('is not retried by later passes, and shows no next retry', async () => {
    await daemon.fullPass();
    await daemon.fullPass();
    expect(attempts).toBe(1);
    const status = await daemon.reaches('bad', 'Failed');
    expect(status?.message).toContain('it never starts');
    expect(status?.resources.filter(({ nextRetry }) => nextRetry !== undefined)).toEqual([]);
  });

  test('is tried again on request', async () => {
    const { body } = await daemon.call('POST', '/apply', {});
    expect(body.operations).toMatchObject([{ site: 'bad' }]);
    await daemon.reaches('bad', 'Failed');
    await expect.poll(() => attempts).toBe(2);
  });

  test('is tried again when its manifest changes', async () => {
    daemon.control.before = () => undefined;
    await daemon.push('bad', daemon.manifest('bad', 1, { name: 'Repaired' }));
    await daemon.reaches('bad', 'Ready');
  });
});

describe('an image', () => {
  test('is changed by one commit, and only if the request names another one', async () => {
    await daemon.push('one', daemon.manifest('one', 1));
    await daemon.reaches('one', 'Ready');
    const image = `sha256:${'c'.repeat(64)}`;
    const first = await daemon.call('POST', '/sites/one/image?wait=20', { image });
    expect(first).toMatchObject({ status: 200, body: { operation: { kind: 'image', status: 'succeeded' } } });
    const [commit] = await daemon.repo.history('one', 1);
    expect(commit).toMatchObject({ revision: first.body.revision, subject: 'Change the image of one' });
    const again = await daemon.call('POST', '/sites/one/image', { image });
    expect(again).toMatchObject({ status: 200, body: { changed: false, revision: first.body.revision } });
  });

  test.each([
    ['one', { image: 'nginx:latest' }, 400, 'malformed_request'],
    ['missing', { image: `sha256:${'c'.repeat(64)}` }, 404, 'unknown_site'],
  ])('is refused for the site %s: %j', async (site, body, status, code) => {
    await daemon.push('one', daemon.manifest('one', 1));
    await daemon.reaches('one', 'Ready');
    expect(await daemon.call('POST', `/sites/${site}/image`, body)).toMatchObject({ status, body: { code } });
  });
});
