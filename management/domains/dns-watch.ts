import { sql } from 'kysely';
import { limit } from '../../base/limit.ts';
import type { Context } from '../context/context.ts';
import type { ManifestView } from '../db/manifest-view.ts';
import type { DnsFacts } from '../lifecycle/site-facts.ts';
import { LIVE } from '../lifecycle/status.ts';
import { type ContainerRow, findContainer, setDns } from '../records/containers.repository.ts';
import type { AskedHosts } from './asked-hosts.ts';
import { addressesIn, type Dns, judgeDns } from './judge-dns.ts';

/** A domain is asked for again after a tenth of the time for which its answer has been the same, within these limits. */
const SHORTEST_MS = 30_000;
const LONGEST_MS = 600_000;
/** Containers of one check. Another process checks none of them for a minute. */
const AT_ONCE = 50;
const WIDTH = 8;

/** Asks the resolvers about one custom domain. */
export async function askDns(
  hosts: AskedHosts,
  { hostnames }: Pick<ManifestView, 'hostnames'>,
  domain: string,
) {
  const [seen, origin] = await Promise.all([hosts.ask(domain), hosts.ask(hostnames.origin)]);
  const addresses = addressesIn(origin.answers);
  return { seen, addresses, dns: judgeDns(domain, { alias: hostnames.origin, addresses }, seen.answers) };
}

/**
 * Records what was answered for custom domains of a container, on which its state depends. A domain of which the
 * resolvers say nothing keeps what they said before.
 */
export async function recordDns(
  { db, clock }: Pick<Context, 'db' | 'clock'>,
  { id, manifest, dns: before }: Pick<ContainerRow, 'id' | 'manifest' | 'dns'>,
  answers: readonly (readonly [domain: string, dns: Pick<Dns, 'status' | 'detail'>])[],
): Promise<void> {
  const now = clock.date();
  const told = new Map(answers);
  const facts: DnsFacts = Object.fromEntries(
    manifest.customDomains.flatMap((domain) => {
      const [known, answer] = [before[domain], told.get(domain)];
      if (answer === undefined || (answer.status === 'unknown' && known !== undefined)) {
        return known === undefined ? [] : [[domain, known]];
      }
      const { status, detail } = answer;
      const since = known?.status === status ? known.since : now.toISOString();
      return [[domain, { status, detail, since }]];
    }),
  );
  const newest = Math.max(0, ...Object.values(facts).map(({ since }) => Date.parse(since)));
  const pause = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, (now.getTime() - newest) / 10));
  await setDns(db, id, facts, new Date(now.getTime() + pause));
}

/** Keeps what is known of the custom domains in DNS up to date, whether or not anyone reads it. */
export async function watchDns(
  context: Pick<Context, 'db' | 'clock' | 'settings' | 'log'>,
  hosts: AskedHosts,
  signal: AbortSignal,
): Promise<void> {
  const { clock, settings, log } = context;
  while (!signal.aborted) {
    const checked = await checkDue(context, hosts).catch((err: unknown) => {
      log.error({ err }, 'the custom domains could not be looked up');
      return 0;
    });
    if (checked < AT_ONCE) await clock.sleep(settings.watchMs, { signal, ref: false });
  }
}

/** Checks the containers that are due. Resolves to their number. */
async function checkDue(context: Pick<Context, 'db' | 'clock'>, hosts: AskedHosts): Promise<number> {
  const { db, clock } = context;
  const now = clock.date();
  const { rows } = await sql<{ id: string }>`
    update containers set dns_next_at = ${new Date(now.getTime() + 60_000)} where id in (
      select id from containers
      where status = any (${[...LIVE]}::text[]) and jsonb_array_length(manifest->'customDomains') > 0
        and (dns_next_at is null or dns_next_at <= ${now})
      order by dns_next_at nulls first limit ${AT_ONCE}::integer for update skip locked)
    returning id`.execute(db);
  await limit(WIDTH).map(rows, async ({ id }) => {
    const row = await findContainer(db, id);
    if (row === undefined) return;
    const ask = async (domain: string) => [domain, (await askDns(hosts, row.manifest, domain)).dns] as const;
    await recordDns(context, row, await Promise.all(row.manifest.customDomains.map(ask)));
  });
  return rows.length;
}
