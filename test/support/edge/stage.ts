import { resolve } from 'node:path';
import { bundleWorker } from '../../../edge/bundle.ts';
import { type Stage, startStage as startOwnStage, startStageOf } from '../../../edge/kit/stage.ts';

export type * from '../../../edge/kit/stage.ts';
export { HOP_SECRET, HOP_SECRET_PREVIOUS } from '../../../edge/kit/stage.ts';

/**
 * The kit's stage. `entry`: the worker to run instead, as a file name in `worker/` or as an absolute path (for another
 * version's worker).
 */
export async function startStage(entry?: string): Promise<Stage> {
  if (entry === undefined) return await startOwnStage();
  return await startStageOf(await bundleWorker(resolve(import.meta.dirname, 'worker', entry)));
}
