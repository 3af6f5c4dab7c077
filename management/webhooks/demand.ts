import { demandRole, demandSufficient } from '../access/roles.ts';
import type { Actor, Database } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';
import { roleInClient, roleInOrganisation } from '../records/memberships.repository.ts';
import { findWebhook, type WebhookRow } from './webhooks.repository.ts';

/** Throws unless the caller may `act` in the client or organisation that a webhook belongs to. */
export async function demandOwner(
  db: Database,
  {
    client,
    organisation,
  }: { readonly client?: string | undefined; readonly organisation?: string | undefined },
  caller: Actor,
): Promise<void> {
  if (client !== undefined) await demandRole(db, client, caller.subject, 'act');
  if (organisation === undefined) return;
  const role = await roleInOrganisation(db, organisation, caller.subject);
  if (role === null) throw new ManagementProblem('unknown_organisation');
  demandSufficient(role, 'act');
}

/** The webhook, if the caller may `act` in its client or organisation. Otherwise throws the problem to answer with. */
export async function demandWebhook(db: Database, id: string, caller: Actor): Promise<WebhookRow> {
  const webhook = await findWebhook(db, id);
  if (webhook === undefined) throw new ManagementProblem('unknown_webhook');
  const { client_id, organisation_id } = webhook;
  const role =
    client_id !== null
      ? await roleInClient(db, client_id, caller.subject)
      : await roleInOrganisation(db, organisation_id ?? '', caller.subject);
  if (role === null) throw new ManagementProblem('unknown_webhook');
  demandSufficient(role, 'act');
  return webhook;
}
