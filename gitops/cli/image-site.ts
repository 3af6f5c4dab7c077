import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { operationSchema, shownSiteSchema } from '../report/report.ts';
import { callProvisioner, type Where } from './instance/provisioner-client.ts';
import { short } from './output/print.ts';

/**
 * `waiting`: the command was ended while the site was at it; the daemon goes on, and the next run looks after it.
 * `skipped`: it wasn't well before, which says nothing of the image.
 */
export interface RolloutOutcome {
  readonly state: 'swapped' | 'already' | 'reverted' | 'failed' | 'waiting' | 'skipped';
  readonly detail: string;
}

export interface Roll {
  readonly site: string;
  readonly image: string;
  /** Stands in the commits. */
  readonly reason: string;
  /** How long it must be well once it has the image. */
  readonly watchMs: number;
}

const POLL_MS = 250;
const SUBJECT = 'Change the image of';

const edited = z.object({
  revision: z.string(),
  changed: z.boolean().default(true),
  operation: z.object({ url: z.string() }).optional(),
});
const statusAnswer = shownSiteSchema.extend({
  history: z.array(z.object({ revision: z.string(), subject: z.string() })),
});

/** Gives one site the image, watches it, and takes it back where it isn't well. Never throws for what the site does. */
export async function rollSite(where: Where, roll: Roll, signal: AbortSignal): Promise<RolloutOutcome> {
  const path = `/sites/${encodeURIComponent(roll.site)}`;
  const begun = performance.now();
  const headers = { 'x-reason': roll.reason };
  const before = await look();
  if (!before.ready && before.history[0]?.subject !== `${SUBJECT} ${roll.site}`) {
    return { state: 'skipped', detail: `it was not well before (${before.reason}), so it was left as it is` };
  }
  const body = { image: roll.image };
  const edit = edited.parse(await callProvisioner(where, 'POST', `${path}/image`, body, headers));
  if (!edit.changed && before.ready) return { state: 'already', detail: '' };
  try {
    const trouble = await troubleOf(edit.operation?.url);
    if (trouble === null) {
      return { state: 'swapped', detail: `in ${Math.round((performance.now() - begun) / 1000)} s` };
    }
    return await takeBack(trouble);
  } catch (error) {
    if (!signal.aborted) throw error;
    return {
      state: 'waiting',
      detail: `commit ${short(edit.revision)} is made, and was not watched to its end`,
    };
  }

  async function look() {
    return statusAnswer.parse(await callProvisioner(where, 'GET', path));
  }

  /** `null`: it came up and was well for the time that it was watched. */
  async function troubleOf(operation: string | undefined): Promise<string | null> {
    for (;;) {
      if (operation === undefined) break;
      const { finishedAt, status, reason } = operationSchema.parse(
        await callProvisioner(where, 'GET', operation),
      );
      if (status === 'failed') return reason ?? 'it failed';
      if (finishedAt !== null) break;
      await pause(POLL_MS, undefined, { signal });
    }
    let until = performance.now() + roll.watchMs;
    for (;;) {
      const { ready, reason, message } = await look();
      if (reason === 'Failed' || reason === 'Retrying') return `${reason}: ${message}`;
      // Not there yet, or on its way to something else: it is watched from when it has arrived.
      if (!ready) until = performance.now() + roll.watchMs;
      else if (performance.now() >= until) return null;
      await pause(POLL_MS, undefined, { signal });
    }
  }

  /** Only the image's own commit is undone; where somebody has changed the site since, it is for a person to judge. */
  async function takeBack(trouble: string): Promise<RolloutOutcome> {
    const [newest] = (await look()).history;
    if (newest === undefined || newest.subject !== `${SUBJECT} ${roll.site}`) {
      return { state: 'failed', detail: `${trouble}; it was changed since, so it stays as it is` };
    }
    const body = { revision: newest.revision };
    // What went wrong comes first, for a commit holds no more: which image it was stands in the one that is undone.
    const why = { 'x-reason': `${trouble} (${roll.reason})`.slice(0, 200).replace(/[^\x20-\x7e]/g, ' ') };
    const back = edited.parse(await callProvisioner(where, 'POST', `${path}/revert`, body, why));
    return { state: 'reverted', detail: `by commit ${short(back.revision)}: ${trouble}` };
  }
}
