import { setTimeout as wait } from 'node:timers/promises';
import { sitesAnswerSchema } from '../../report/report.ts';

/** How long a start waits for its sites. Sites that take longer are provisioned after the start has ended. */
const TIMEOUT_MS = 20_000;
const POLL_MS = 50;

/** Waits until the provisioner has completed a full pass and no site is progressing or being removed. */
export async function awaitSettled({ url, secret }: { url: string; secret: string }): Promise<void> {
  const headers = { 'x-secret': secret };
  const settled = async () => {
    if (!(await fetch(`${url}/readyz`, { headers })).ok) return false;
    const answer: unknown = await (await fetch(`${url}/sites`, { headers })).json();
    const { sites } = sitesAnswerSchema.parse(answer);
    return sites.every(({ reason }) => reason !== 'Progressing' && reason !== 'Removing');
  };
  const deadline = Date.now() + TIMEOUT_MS;
  while (!(await settled()) && Date.now() < deadline) await wait(POLL_MS);
}
