import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { shownSiteSchema } from '../../report/report.ts';

/** How long a start waits for its sites; they go on by themselves, the report is only less complete. */
const PATIENCE_MS = 20_000;
const POLL_MS = 50;

const sitesSchema = z.object({ sites: z.array(shownSiteSchema) });

/** Waits until the provisioner has looked at the world once and no site is on its way any more. */
export async function awaitSettled({ url, secret }: { url: string; secret: string }): Promise<void> {
  const headers = { 'x-secret': secret };
  const settled = async () => {
    if (!(await fetch(`${url}/readyz`, { headers })).ok) return false;
    const answer: unknown = await (await fetch(`${url}/sites`, { headers })).json();
    return sitesSchema
      .parse(answer)
      .sites.every(({ reason }) => reason !== 'Progressing' && reason !== 'Removing');
  };
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await settled()) && Date.now() < deadline) await wait(POLL_MS);
}
