import type { PluginContext } from '../contract.ts';
import { cookieValues, isFirstParty, type ProfileRecord, startOf } from '../profile.ts';
import { withHttpCookies } from './cookies.ts';
import { httpCookies } from './http-cookies.ts';

const ID = /^[0-9a-f]{32}$/;
const GRANTED = { analytics_storage: 'granted', ad_storage: 'granted' } as const;

/**
 * Keeps the tag server's ids when an answer sets them. A hit doesn't say what the visitor has chosen. If a grant is
 * needed, only a record that a bootstrap has stored shows that it was given. The next bootstrap deletes the ids that
 * the visitor's choice doesn't allow. `Sec-GPC` always counts.
 */
export async function keepPassed(
  lines: readonly string[],
  request: Request,
  context: PluginContext,
): Promise<void> {
  const header = request.headers.get('cookie');
  const id = cookieValues(header, '_fpid').find((value) => ID.test(value));
  const isOwn = context.site.domains.some((domain) => isFirstParty(context.hostname, domain));
  if (id === undefined || !isOwn || context.isBot) return;
  const now = context.now();
  const possible = context.consent(GRANTED);
  const passing = (endsAt: number) =>
    httpCookies(lines, { header, now, endsAt }).filter(({ name }) => possible.allows(name));
  if (passing(now + context.identityMs).length === 0) return;

  const [derived] = await context.profileKeys({ sent: {}, header });
  const key = derived ?? id;
  const record = await context.profiles.read(key);
  if (record === undefined || record?.isShared) return;
  const consent = context.consent({});
  const startedAt = record === null ? now : startOf(record, now);
  const endsAt = startedAt + context.identityMs;
  const passed = passing(endsAt).filter(({ name }) => record !== null || consent.allows(name));
  const before = record?.cookies ?? [];
  const cookies = withHttpCookies(before, passed, now);
  if (JSON.stringify(cookies) === JSON.stringify(before)) return;
  const next: ProfileRecord = { session: null, ...record, version: 1, cookies, startedAt };
  if (cookies.length > 0) await context.profiles.write(key, next, endsAt);
  else await context.profiles.delete(key);
}
