import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { systemClock } from '../../../base/clock.ts';
import { cloudflareBehaviours } from '../cloudflare/behaviours.ts';
import { untriedQuotas } from '../cloudflare/quotas.ts';
import type { CloudflareTarget } from '../cloudflare/target.ts';
import type { ConformEnv } from '../env.ts';
import { NotTried } from '../not-tried.ts';
import type { OpenTarget, Table } from '../table.ts';
import { buildInventory } from './inventory.ts';
import { type Answer, startMeter } from './meter.ts';

const REAL = 'https://api.cloudflare.com/client/v4';
const zoneAnswer = z.object({
  result: z.object({ id: z.string(), name: z.string(), account: z.object({ id: z.string() }) }),
});
const refusal = z.object({ errors: z.array(z.object({ code: z.number(), message: z.string() })) });

/** Cloudflare's API at an address; `null`: the real one. */
export function cloudflareTable(address: string | null, env: ConformEnv): Table<CloudflareTarget> {
  return {
    name: 'Cloudflare',
    behaviours: [...cloudflareBehaviours, ...untriedQuotas],
    open: () => openCloudflare(baseUrl(address ?? REAL), env),
  };
}

/** The API's path may be left out. */
function baseUrl(address: string): string {
  const url = URL.parse(address);
  if (url === null) throw new NotTried(`${address} is not an address: give a URL like ${REAL}`);
  return url.pathname === '/' ? `${url.origin}/client/v4` : url.href.replace(/\/$/, '');
}

async function openCloudflare(upstream: string, env: ConformEnv): Promise<OpenTarget<CloudflareTarget>> {
  const { CLOUDFLARE_API_TOKEN: token, CLOUDFLARE_ZONE_ID: zone } = env;
  if (token === null || zone === null) {
    throw new NotTried('set CLOUDFLARE_API_TOKEN and CLOUDFLARE_ZONE_ID (docs/conformance.md)');
  }
  const prefix = `tagyard-conform-${randomBytes(4).toString('hex')}`;
  const standIn = `token-of-${prefix}`;
  await using opening = new AsyncDisposableStack();
  let inventory: ReturnType<typeof buildInventory> | null = null;
  const meter = await startMeter({
    upstream,
    token,
    standIn,
    objection: async (...call) => (await inventory?.objection(...call)) ?? null,
    onAnswer: (json) => inventory?.created(json),
  });
  opening.defer(() => meter.close());

  const answer = await meter.call('GET', `/zones/${zone}`).catch((cause: unknown) => {
    throw new NotTried(meter.lost() ?? String(cause), { cause });
  });
  const found = zoneAnswer.safeParse(answer.json);
  if (!found.success) {
    throw new NotTried(
      `the zone ${zone} can't be read: ${said(answer)}; check CLOUDFLARE_API_TOKEN and CLOUDFLARE_ZONE_ID`,
    );
  }
  const { name, account } = found.data.result;
  inventory = buildInventory({
    call: (method, path) => callUnthrottled(meter.call, method, path),
    place: { zone, account: account.id },
    prefix,
  });
  const { removeAll } = inventory;
  const running = opening.move();
  return {
    target: {
      url: meter.url,
      token: standIn,
      zone: { id: zone, name },
      account: account.id,
      prefix,
      sleep: systemClock.sleep,
    },
    subject: `${new URL(upstream).host}, zone ${name}, prefix ${prefix}`,
    lost: meter.lost,
    async close() {
      await meter.drain();
      const { removed, remains } = await removeAll();
      await running.disposeAsync();
      const costs = [`${meter.calls()} calls`, `removed at the end: ${removed}`];
      return { costs, remains: remains.map((thing) => `${thing} in the zone ${name}: delete it by hand`) };
    },
  };
}

/** The time over which the API counts calls. */
const WINDOW_SECONDS = 300;

/** Repeats a call after a 429, at most twice: what the run made must be removed, also after too many calls. */
async function callUnthrottled(
  call: (method: string, path: string) => Promise<Answer>,
  method: string,
  path: string,
): Promise<Answer> {
  for (let attempts = 1; ; attempts += 1) {
    const answer = await call(method, path);
    if (answer.status !== 429 || attempts === 3) return answer;
    await systemClock.sleep(1000 * Math.min(WINDOW_SECONDS, answer.retryAfter ?? WINDOW_SECONDS));
  }
}

function said({ status, json }: Answer): string {
  const parsed = refusal.safeParse(json);
  const errors = parsed.success ? parsed.data.errors.map(({ code, message }) => `${message} (${code})`) : [];
  return [`status ${status}`, ...errors].join(', ');
}
