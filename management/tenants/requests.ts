import type { FastifyReply, FastifyRequest } from 'fastify';
import type { TenantRef } from '../access/tenants.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { isDryRun, type planOf } from '../view/plan.ts';
import type { TenantChanges } from './change.service.ts';
import { type Tenant, tenantTag } from './tenant-file.ts';

/** What the routes of clients and organisations work with. */
export interface TenantParts {
  readonly context: Context;
  readonly changes: TenantChanges;
}

/** The refusals of every change of a client or organisation. */
export const TENANT_REFUSALS = [
  'invalid_request',
  'forbidden',
  'tenant_file_broken',
  'limit_reached',
  'precondition_failed',
  'commit_refused',
  'projection_failed',
  'sites_repo_unavailable',
] as const;

interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

interface Answering<View> {
  /** Subject of the commit. */
  readonly subject: string;
  /** Status of the answer to the change; a plan is always 200. */
  readonly status?: 201 | 204;
  edit(current: Tenant | null): Tenant;
  view(changed: Tenant): View;
}

/** Makes the change of a request and answers it. With `dryRun`, only answers with the plan of the change. */
export async function answerChange<View>(
  { changes }: Pick<TenantParts, 'changes'>,
  { request, reply }: Exchange,
  ref: TenantRef,
  { subject, status, edit, view }: Answering<View>,
): Promise<View | { plan: ReturnType<typeof planOf> }> {
  const { 'if-match': ifMatch } = request.headers;
  const change = { caller: callerOf(request), requestId: request.id, subject, ifMatch, edit };
  if (isDryRun(request.query)) return await changes.plan(ref, change);
  const changed = await changes.commit(ref, change);
  reply.status(status ?? 200).header('etag', tenantTag(ref, changed));
  return view(changed);
}
