import { KV_NAMESPACES } from '../../plugins/document.ts';
import { namespaceTitle } from '../appliers/edge/store.ts';
import type { CloudflareClient } from '../clients/cloudflare.ts';
import { CloudflareRefusal } from '../clients/cloudflare-errors.ts';
import { checkPart, NotChecked } from '../report/check-part.ts';
import type { PartCheck } from '../report/report.ts';

interface Account {
  readonly client: CloudflareClient;
  readonly zoneId: string;
  readonly script: string;
}

/** Codes of an id that Cloudflare doesn't know, or that is not for this token. */
const UNKNOWN_ZONE: readonly number[] = [7003, 9109, 1001];
/** No object of Cloudflare has this id, so its deletion changes nothing. */
const NO_OBJECT = '0'.repeat(32);
const NO_KEY = 'tagyard-check';
const EDIT_KV = 'Account, Workers KV Storage: Edit';

/** Checks the token, the zone and the domain against each other. Never throws. */
export async function checkZone({ client, zoneId }: Account, edgeDomain: string): Promise<PartCheck> {
  return await checkPart('cloudflare_zone', {
    fix: 'silent',
    subject: 'CLOUDFLARE_API_URL',
    async ask(signal, fault) {
      const { name, status } = await client.zone(zoneId, signal).catch((error: unknown) => {
        if (!(error instanceof CloudflareRefusal)) throw error;
        if (!error.codes.some((code) => UNKNOWN_ZONE.includes(code))) {
          throw fault(`CLOUDFLARE_API_TOKEN is refused: ${error.message}`, 'token');
        }
        throw fault(`CLOUDFLARE_ZONE_ID: the token may read no zone ${zoneId}: ${error.message}`, 'unknown');
      });
      if (edgeDomain !== name && !edgeDomain.endsWith(`.${name}`)) {
        throw fault(`EDGE_DOMAIN: ${edgeDomain} is not in ${name}, the zone of CLOUDFLARE_ZONE_ID`, 'other');
      }
      if (status !== undefined && status !== 'active') {
        throw fault(
          `EDGE_DOMAIN: Cloudflare has not activated the zone ${name}: it is ${status}`,
          'inactive',
        );
      }
      return `Cloudflare serves the zone ${name}`;
    },
  });
}

/**
 * Checks each permission by the deletion of what doesn't exist: Cloudflare looks at the token first. `writesDns`: sites'
 * records are at Cloudflare. Never throws.
 */
export async function checkToken(
  { client, zoneId, script }: Account,
  { writesDns }: { readonly writesDns: boolean },
): Promise<PartCheck> {
  return await checkPart('cloudflare_token', {
    fix: 'lacks',
    async ask(signal, fault) {
      const namespace = namespaceTitle(script, KV_NAMESPACES[0]);
      const absent = { deletes: [{ id: NO_OBJECT }], puts: [], posts: [] };
      const edits: readonly (readonly [string, () => Promise<unknown>])[] = [
        ['Zone, Zone: Read', () => client.zone(zoneId, signal)],
        ['Zone, Workers Routes: Edit', () => client.deleteRoute(zoneId, NO_OBJECT, signal)],
        [
          EDIT_KV,
          async () => {
            const all = await client.namespaces(signal);
            const own = all.find(({ title }) => title === namespace);
            if (own === undefined) throw new NotChecked(`${EDIT_KV}: there is no namespace ${namespace} yet`);
            await client.deleteKv(own.id, [NO_KEY], signal);
          },
        ],
        ['Account, Workers Scripts: Read', () => client.scriptBindings(script, signal)],
      ];
      const dns = ['Zone, DNS: Edit', () => client.batchDnsRecords(zoneId, absent, signal)] as const;
      const asked = await Promise.all(
        (writesDns ? [...edits, dns] : edits).map(async ([permission, ask]) => ({
          permission,
          answer: await answerOf(ask),
        })),
      );
      const named = (wanted: 'has' | 'lacks') =>
        asked.flatMap(({ permission, answer }) => (answer === wanted ? [permission] : []));
      const lacking = named('lacks');
      if (lacking.length > 0) throw fault(`CLOUDFLARE_API_TOKEN lacks ${lacking.join('; ')}`, 'lacks');
      const has = `it has ${named('has').join('; ')}`;
      for (const { answer } of asked) {
        if (answer instanceof NotChecked) throw new NotChecked(`${answer.message}; ${has}`);
      }
      return has;
    },
    explain: unanswered,
  });
}

/** What is absent was looked for, so the token has the permission. Other refusals say nothing of it. */
async function answerOf(ask: () => Promise<unknown>): Promise<'has' | 'lacks' | NotChecked> {
  try {
    await ask();
    return 'has';
  } catch (error) {
    if (error instanceof NotChecked) return error;
    const meaning = error instanceof CloudflareRefusal ? error.meaning : null;
    if (meaning === 'absent') return 'has';
    if (meaning === 'unauthorized') return 'lacks';
    throw error;
  }
}

/** Checks that the worker's stores exist. Never throws. */
export async function checkEdgeKv({ client, script }: Account): Promise<PartCheck> {
  return await checkPart('edge_kv', {
    fix: 'missing',
    async ask(signal, fault) {
      const titles = new Set((await client.namespaces(signal)).map(({ title }) => title));
      const missing = KV_NAMESPACES.map((name) => namespaceTitle(script, name)).filter(
        (title) => !titles.has(title),
      );
      if (missing.length === 0) return `the account has the namespaces of ${script}`;
      throw fault(`CLOUDFLARE_ACCOUNT_ID: the account has no KV namespace ${missing.join(', ')}`, 'missing');
    },
    explain: unanswered,
  });
}

/** Another check says what is wrong with the token, or with the way to Cloudflare. */
function unanswered(error: unknown): Omit<PartCheck, 'name'> {
  const detail = error instanceof Error ? error.message : String(error);
  return { status: 'skipped', detail, fix: null };
}
