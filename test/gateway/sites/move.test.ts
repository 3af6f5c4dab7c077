import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { renderLoad } from '../../support/gateway/edge-load.ts';
import { MoveStage } from '../../support/gateway/moves.ts';

const PER_SECOND = 20;
const WAIT = { timeoutMs: 180_000, intervalMs: 500 };

describeWith(['kubernetes', 'root', 'nginx'], 'a site that moves to a cluster under load', () => {
  let stage: MoveStage;

  beforeAll(async () => {
    stage = await MoveStage.start();
  });
  afterAll(() => stage?.[Symbol.asyncDispose]());

  /** Proves that no request fails while the work is done. Returns the hosts that the site's name has led to. */
  async function withoutLoss(work: (isSent: (seconds: number) => Promise<void>) => Promise<unknown>) {
    const load = await stage.load(PER_SECOND);
    const [done] = await Promise.allSettled([
      work((seconds) => {
        const from = load.now();
        return eventually(() => expect(load.now() - from).toBeGreaterThan(seconds), WAIT);
      }),
    ]);
    const report = await load.end();
    process.stdout.write(`${renderLoad(report)}\n`);
    if (done.status === 'rejected') throw done.reason;
    expect(report.failures).toEqual([]);
    expect(report.sent).toBeGreaterThan(PER_SECOND);
    return [...load.seen];
  }

  test('is moved there and back, and no request fails', async () => {
    for (const to of ['tag-2', 'tag-1'] as const) {
      expect(await withoutLoss(() => stage.move(to))).toHaveLength(2);
    }
  });

  test('is still served when the cluster’s provisioner ends without notice, and after its return', async () => {
    await stage.move('tag-2');
    await withoutLoss(async (isSent) => {
      await stage.restartProvisionerOfCluster(() => isSent(3));
      await stage.isReadyOn('tag-2');
    });
  });
});
