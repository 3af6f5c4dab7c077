import { sql } from 'kysely';
import { tokenSubject } from '../../sites/requests/token-subject.ts';
import type { Database } from '../db/database.ts';

/** What ended because its maker is no owner or admin any more. */
export interface LeftBehind {
  readonly tokens: readonly { readonly id: string; readonly name: string }[];
  readonly invitations: readonly { readonly id: string; readonly role: string }[];
  readonly handoverLinks: readonly { readonly id: string }[];
  /** Switched off: who switches one on again answers for it. */
  readonly webhooks: readonly { readonly id: string; readonly url: string }[];
}

/** Either a client, or an organisation and all its clients. */
interface Scope {
  readonly kind: 'clients' | 'organisations';
  readonly id: string;
}

/**
 * Ends the credentials, links and webhooks in a client, or in an organisation and its clients, whose maker is no owner or
 * admin there any more: someone who has left, or has a weaker role now, could go on by them. What a revoked token made
 * ends with it. `operators` need no role.
 */
export async function endLeftBehind(
  trx: Database,
  scope: Scope,
  operators: readonly string[],
): Promise<LeftBehind> {
  const inScope =
    scope.kind === 'clients'
      ? sql`made.client_id = ${scope.id}`
      : sql`(made.organisation_id = ${scope.id}
          or made.client_id in (select id from clients where organisation_id = ${scope.id}))`;
  const isLeft = (maker: 'created_by' | 'changed_by') => {
    const subject = sql.ref(`made.${maker}`);
    return sql`${subject} <> all (${operators}::text[])
      and not exists (select from client_memberships as own
        where own.client_id = made.client_id and own.subject = ${subject} and own.role in ('owner', 'admin'))
      and not exists (select from organisation_memberships as own
        left join clients on clients.id = made.client_id
        where own.organisation_id in (made.organisation_id, clients.organisation_id)
          and own.subject = ${subject} and own.role in ('owner', 'admin'))`;
  };
  const tokens: { id: string; name: string }[] = [];
  for (;;) {
    const { rows } = await sql<{ id: string; name: string }>`
      update service_tokens as made set revoked_at = now()
      where ${inScope} and revoked_at is null and ${isLeft('created_by')} returning id, name`.execute(trx);
    if (rows.length === 0) break;
    tokens.push(...rows);
    await endMemberships(
      trx,
      rows.map(({ id }) => id),
    );
  }
  const { rows: invitations } = await sql<{ id: string; role: string }>`
    delete from invitations as made
    where ${inScope} and accepted_at is null and ${isLeft('created_by')} returning id, role`.execute(trx);
  const { rows: handoverLinks } = await sql<{ id: string }>`
    update handover_links as link set expires_at = now(), recipients = '[]',
      mail = case when mail in ('waiting', 'due') then 'none' else mail end
    where expires_at > now() and exists (
      select from (select link.client_id, null::uuid as organisation_id, link.created_by) as made
      where ${inScope} and ${isLeft('created_by')}) returning id`.execute(trx);
  const { rows: webhooks } = await sql<{ id: string; url: string }>`
    update webhooks as made
    set enabled = false, updated_at = now(), notice_at = now(),
      notice = 'switched off: ' || changed_by || ', who made or last changed it, is no owner or admin any more'
    where ${inScope} and enabled and ${isLeft('changed_by')} returning id, url`.execute(trx);
  return { tokens, invitations, handoverLinks, webhooks };
}

/** Takes the roles of tokens, which ends their event streams. */
export async function endMemberships(trx: Database, tokens: readonly string[]): Promise<void> {
  const subjects = tokens.map(tokenSubject);
  await trx.deleteFrom('client_memberships').where('subject', 'in', subjects).execute();
  await trx.deleteFrom('organisation_memberships').where('subject', 'in', subjects).execute();
}
