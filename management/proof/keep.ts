import { randomUUID } from 'node:crypto';
import { limit } from '../../base/limit.ts';
import type { Context } from '../context/context.ts';
import { proveAll, takeDue } from '../records/domain-proofs.repository.ts';
import { checkProof } from './check.ts';
import { settleAll } from './settle.ts';

/** Milliseconds between two searches for proofs whose check is due. */
const SEARCH_MS = 30_000;
/** If a process that took a check dies, another one takes it after this time. */
const TAKEN_MS = 600_000;
const MOST = 200;
const WIDTH = 8;

/** Checks the proofs that are due and brings git up to date with them, once. */
async function checkDueProofs(context: Context): Promise<void> {
  const { db, clock, settings, log } = context;
  const requestId = randomUUID();
  if (settings.domainProof === 'dns') {
    const now = clock.date();
    const until = new Date(now.getTime() + TAKEN_MS);
    await limit(WIDTH).map(await takeDue(db, { now, until, most: MOST }), async ({ client_id, domain }) => {
      const key = { client: client_id, domain };
      await checkProof(context, key, requestId).catch((err: unknown) =>
        log.error({ err, domain }, 'the proof of a domain could not be checked'),
      );
    });
  } else {
    await proveAll(db);
  }
  await settleAll(context, requestId);
}

/** Checks proofs until the signal. With `DOMAIN_PROOF=off`, all domains count as proven. */
export async function keepProofs(context: Context, signal: AbortSignal): Promise<void> {
  const { clock, settings, log } = context;
  if (settings.domainProof === 'off') {
    log.warn(
      'DOMAIN_PROOF=off: every domain counts as its client’s; set it to dns if clients don’t trust each other',
    );
  }
  while (!signal.aborted) {
    await checkDueProofs(context).catch((err: unknown) =>
      log.error({ err }, 'the proofs of domains could not be checked'),
    );
    await clock.sleep(SEARCH_MS, { signal, ref: false });
  }
}
