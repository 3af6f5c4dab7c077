import { z } from 'zod';
import type { Context } from '../context/context.ts';
import { roleFrom } from '../lifecycle/roles.ts';
import { keyFrom, listPage } from '../view/page.ts';
import { type InvitationRow, listInvitations } from './invitations.repository.ts';

type Managed = Pick<Parameters<typeof listInvitations>[1], 'manager' | 'client' | 'organisation'>;

/** One page of the invitations that can still be accepted, limited by `managed`. */
export async function readInvitations(
  { db, clock }: Pick<Context, 'db' | 'clock'>,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
  managed: Managed,
) {
  const [after] = keyFrom(cursor, z.tuple([z.uuid()])) ?? [];
  const rows = await listInvitations(db, { ...managed, after, limit: limit + 1, now: clock.date() });
  const { items, next } = listPage(rows, limit, ({ id }) => [id]);
  return { items: items.map(presentInvitation), next };
}

export function presentInvitation(row: InvitationRow) {
  const { id, client_id, organisation_id, email, role, created_by } = row;
  return {
    id,
    client: client_id,
    organisation: organisation_id,
    email,
    role: roleFrom(role),
    createdBy: created_by,
    createdAt: row.created_at.toISOString(),
    expiresAt: row.expires_at.toISOString(),
  };
}
