import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { operationSchema, shownSiteSchema } from '../report/report.ts';
import { imageCommit, isChangeable, watchedCondition } from '../report/rollout.ts';
import { type CliContext, callProvisioner, headerText } from './instance/provisioner-client.ts';
import { short } from './output/print.ts';

interface ImageChange {
  readonly site: string;
  readonly image: string;
  /** Recorded in the commits. */
  readonly reason: string;
  /** How long the site must be ready with the new image. */
  readonly watchMs: number;
}

/**
 * The outcome of the rollout for one site. `waiting`: the command ended before the site was watched to the end; the
 * next run of the command continues. `skipped`: the site was not ready before, so it says nothing about the image.
 */
export interface RolloutOutcome {
  readonly state: 'swapped' | 'already' | 'reverted' | 'failed' | 'waiting' | 'skipped';
  readonly detail: string;
}

const POLL_MS = 250;

const edited = z.object({
  revision: z.string(),
  changed: z.boolean().default(true),
  operation: z.object({ url: z.string() }).optional(),
});
const siteWithHistory = shownSiteSchema.extend({
  history: z.array(z.object({ revision: z.string(), subject: z.string() })),
});

/**
 * Changes the image of one site, watches the site, and reverts the change if the site doesn't become or stay ready. A
 * failure of the site is an outcome, not an error.
 */
export async function rollOutImage(
  context: CliContext,
  { site, image, reason, watchMs }: ImageChange,
  signal: AbortSignal,
): Promise<RolloutOutcome> {
  const path = `/sites/${encodeURIComponent(site)}`;
  const startedAt = performance.now();
  const before = await readSite();
  if (!isChangeable(before)) {
    return { state: 'skipped', detail: `it was not ready before (${before.reason}), so it was not changed` };
  }
  const edit = await postEdit('image', { image }, reason);
  if (!edit.changed && before.ready) return { state: 'already', detail: '' };
  try {
    const problem = (await failedOperation(edit.operation?.url)) ?? (await failedCondition());
    if (problem === null) {
      return { state: 'swapped', detail: `in ${Math.round((performance.now() - startedAt) / 1000)} s` };
    }
    return await revertImage(problem);
  } catch (error) {
    if (!signal.aborted) throw error;
    return {
      state: 'waiting',
      detail: `commit ${short(edit.revision)} is written, but the site was not watched to the end`,
    };
  }

  async function readSite() {
    return siteWithHistory.parse(await callProvisioner(context, { method: 'GET', path }));
  }

  async function postEdit(verb: 'image' | 'revert', body: object, why: string) {
    const headers = { 'x-reason': headerText(why) };
    const answer = await callProvisioner(context, { method: 'POST', path: `${path}/${verb}`, body, headers });
    return edited.parse(answer);
  }

  /** Waits for the end of the operation. Returns why it failed, or `null`. */
  async function failedOperation(url: string | undefined): Promise<string | null> {
    if (url === undefined) return null;
    for (;;) {
      const operation = operationSchema.parse(await callProvisioner(context, { method: 'GET', path: url }));
      if (operation.status === 'failed') return operation.reason ?? 'it failed';
      if (operation.finishedAt !== null) return null;
      await pause(POLL_MS, undefined, { signal });
    }
  }

  /** Watches the site until it has been ready for `watchMs`. Returns the condition that it failed with, or `null`. */
  async function failedCondition(): Promise<string | null> {
    let until = performance.now() + watchMs;
    for (;;) {
      const now = await readSite();
      const condition = watchedCondition(now);
      if (condition === 'failed') return `${now.reason}: ${now.message}`;
      if (condition === 'pending') until = performance.now() + watchMs;
      else if (performance.now() >= until) return null;
      await pause(POLL_MS, undefined, { signal });
    }
  }

  /** Reverts the image's own commit only. If the site was changed since, the operator has to decide. */
  async function revertImage(problem: string): Promise<RolloutOutcome> {
    const revision = imageCommit(await readSite());
    if (revision === null) {
      return { state: 'failed', detail: `${problem}; the site was changed since, so it is not reverted` };
    }
    // A reason has at most 200 characters, so the problem comes first. The reverted commit names the image.
    const why = `${problem} (${reason})`.slice(0, 200);
    const back = await postEdit('revert', { revision, removal: false }, why);
    return { state: 'reverted', detail: `by commit ${short(back.revision)}: ${problem}` };
  }
}
