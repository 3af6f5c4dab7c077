import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { counted } from '../../base/text.ts';
import { SitesRepoError } from '../../sites/repo/errors.ts';
import { isOperator, roleIn, type TenantRef } from '../access/tenants.ts';
import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { undone } from '../db/undone.ts';
import { ManagementProblem, repoProblem } from '../http/errors.ts';
import { isAtLeast, type Role, roleFrom } from '../lifecycle/roles.ts';
import { endLeftBehind, type LeftBehind } from '../records/left-behind.repository.ts';
import { releasePlaces } from '../records/places.repository.ts';
import { planOf } from '../view/plan.ts';
import { demandArchivable, demandClientLimits } from './limits.ts';
import type { TenantProjection } from './projection.ts';
import {
  demandTenantTag,
  formatTenant,
  type Member,
  MOST_MEMBERS,
  parseTenant,
  type Tenant,
  tenantName,
} from './tenant-file.ts';
import { readTenant, storeTenant } from './tenants.repository.ts';

const NOTHING_ENDED: LeftBehind = { tokens: [], invitations: [], handoverLinks: [], webhooks: [] };

interface TenantChange {
  readonly caller: Actor;
  readonly requestId: string;
  /** Subject of the commit. */
  readonly subject: string;
  readonly ifMatch?: string | undefined;
  /**
   * Edits what git holds now (`null`: nothing), or throws a `ManagementProblem`. Called again if another commit came
   * first.
   */
  edit(current: Tenant | null): Tenant;
}

/**
 * How the API changes clients and organisations: it commits in the caller's name, then projects the commit into the database.
 */
export class TenantChanges {
  readonly #context: Context;
  readonly #projection: TenantProjection;

  constructor(context: Context, projection: TenantProjection) {
    this.#context = context;
    this.#projection = projection;
  }

  /** When this resolves, the database shows the change. */
  async commit(ref: TenantRef, change: TenantChange): Promise<Tenant> {
    const { repo, log } = this.#context;
    const { caller, requestId, subject } = change;
    let written: Tenant | null = null;
    const granted = await roleIn(this.#context, ref, caller);
    const id = randomUUID();
    try {
      await repo.commit({
        site: tenantName(ref),
        subject,
        author: { name: caller.name, email: caller.email },
        trailers: {
          [ref.kind === 'clients' ? 'Client' : 'Organisation']: ref.id,
          Actor: caller.subject,
          'Request-Id': requestId,
          Reason: 'asked for through the API',
        },
        edit: async (text) => {
          const current = await this.#current(ref, text);
          if (current !== null && granted !== null) await this.#demandStill(granted, ref, current, caller);
          written = await this.#edited(current, ref, change, id);
          const next = formatTenant(ref, written);
          // An edit that changes nothing keeps the text, including its comments.
          return text !== null && current !== null && formatTenant(ref, current) === next ? text : next;
        },
      });
    } catch (cause) {
      // After a fault of the repository the commit may exist, so the client stays counted for a while.
      if (cause instanceof SitesRepoError && cause.refusal === null) throw repoProblem(cause);
      await releasePlaces(this.#context.db, id);
      throw cause instanceof SitesRepoError ? repoProblem(cause) : cause;
    }
    try {
      await this.#projection.apply(ref);
      await releasePlaces(this.#context.db, id);
    } catch (cause) {
      log.error(
        { err: cause, file: tenantName(ref) },
        'a change could not be projected; the projection is retried',
      );
      throw new ManagementProblem('projection_failed', { cause });
    }
    if (written === null) throw new Error('a commit without an edit');
    return written;
  }

  /** What a change would do, with what would end because its maker would be no owner or admin any more. */
  async plan(ref: TenantRef, change: TenantChange): Promise<{ plan: ReturnType<typeof planOf> }> {
    const before = await readTenant(this.#context.db, ref);
    const after = await this.#edited(before, ref, change, null);
    if (before === null) return { plan: planOf(null, after) };
    const { db, settings } = this.#context;
    const ended = await undone(db, async (trx) => {
      await storeTenant(trx, ref, after, '');
      return await endLeftBehind(trx, ref, settings.superAdmins);
    });
    return { plan: planOf({ ...before, ...ended }, { ...after, ...NOTHING_ENDED }) };
  }

  /** `id`: of a change that is about to be committed. */
  async #edited(
    current: Tenant | null,
    ref: TenantRef,
    { edit, ifMatch }: TenantChange,
    id: string | null,
  ): Promise<Tenant> {
    if (current !== null) demandTenantTag(ifMatch, ref, current);
    const next = edit(current);
    if (current !== null) demandClosed(ref, current, next);
    const most = Math.min(MOST_MEMBERS, this.#context.settings.quotas.members);
    if (next.members.length > Math.max(most, current?.members.length ?? 0)) {
      throw new ManagementProblem('limit_reached', {
        detail: `at most ${counted(most, 'member is', 'members are')} allowed`,
      });
    }
    await demandArchivable(this.#context.db, ref, current, next);
    await demandClientLimits(this.#context, ref, { before: current, after: next, change: id });
    return next;
  }

  /**
   * Throws `forbidden` if the caller has lost the role since the request was sent: the request may have waited behind the
   * commit that removed the role, which the database may not show yet.
   */
  async #demandStill(granted: Role, ref: TenantRef, current: Tenant, caller: Actor): Promise<void> {
    if (isOperator(this.#context, caller)) return;
    const role = await roleIn(this.#context, ref, caller);
    const known = await readTenant(this.#context.db, ref);
    const [before, now] = [known, current].map((tenant) => {
      const own = tenant?.members.find(({ subject }) => subject === caller.subject);
      return own === undefined ? null : roleFrom(own.role);
    });
    const isTaken = before != null && (now == null || !isAtLeast(now, before));
    if (role !== null && isAtLeast(role, granted) && !isTaken) return;
    throw new ManagementProblem('forbidden', {
      detail: 'the caller has lost the role since the request was sent',
    });
  }

  /** What git holds. After an upgrade, until the first projection, only the database has the client or organisation. */
  async #current(ref: TenantRef, text: string | null): Promise<Tenant | null> {
    if (text === null) return await readTenant(this.#context.db, ref);
    const parsed = parseTenant(text, ref);
    if (parsed.ok) return parsed.tenant;
    throw new ManagementProblem('tenant_file_broken', {
      detail: `${tenantName(ref)}.yaml: ${parsed.problem}`,
    });
  }
}

/**
 * Throws `client_archived` or `organisation_archived` if a change of an archived one does more than remove members or end
 * the archiving.
 */
function demandClosed({ kind }: TenantRef, before: Tenant, after: Tenant): void {
  if (before.archivedAt === null || after.archivedAt === null) return;
  const isKept = (member: Member) => before.members.some((known) => isDeepStrictEqual(known, member));
  const { members, ...rest } = after;
  const { members: _, ...restBefore } = before;
  if (isDeepStrictEqual(rest, restBefore) && members.every(isKept)) return;
  throw new ManagementProblem(kind === 'clients' ? 'client_archived' : 'organisation_archived');
}
