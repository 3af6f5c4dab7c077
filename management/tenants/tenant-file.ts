import { parseDocument, stringify } from 'yaml';
import { z } from 'zod';
import { refuseHostileYaml } from '../../sites/manifest/limits.ts';
import { canonicalId, givenName } from '../../sites/manifest/schema.ts';
import { memberSubject, STORED_ROLES, type StoredRole } from '../../sites/requests/members.ts';
import type { TenantRef } from '../access/tenants.ts';
import { demandTag, shortDigest } from '../view/etag.ts';

export interface Member {
  readonly subject: string;
  readonly role: StoredRole;
}

/** What git holds of a client or an organisation. */
export interface Tenant {
  readonly name: string;
  /** Id of a client's organisation; `null`: none. */
  readonly organisation: string | null;
  /** ISO 8601; `null`: not archived. */
  readonly archivedAt: string | null;
  /** By subject, sorted. */
  readonly members: readonly Member[];
}

/** The API adds no member beyond this number. In a file, no role may have more members. */
export const MOST_MEMBERS = 1_000;

const subjects = z.array(memberSubject).max(MOST_MEMBERS).optional();
const members = z
  .strictObject(
    Object.fromEntries(STORED_ROLES.map((role) => [role, subjects])) as Record<StoredRole, typeof subjects>, // one per role
  )
  .check(({ value, issues }) => {
    const all = Object.values(value).flatMap((list) => list ?? []);
    const twice = all.find((subject, index) => all.indexOf(subject) !== index);
    if (twice === undefined) return;
    issues.push({ code: 'custom', message: `names ${twice} twice`, input: value });
  });

const tenantFile = z.strictObject({
  version: z.literal(1),
  id: canonicalId,
  name: givenName,
  organisation: canonicalId.optional(),
  archivedAt: z.iso.datetime().optional(),
  members: members.default({}),
});

type ParsedTenant =
  | { readonly ok: true; readonly tenant: Tenant }
  | { readonly ok: false; readonly problem: string };

/** The name of a file in the sites repository: its path without the ending. */
export const tenantName = ({ kind, id }: TenantRef): string => `${kind}/${id}`;

/** Parses `clients/<id>.yaml` or `organisations/<id>.yaml`; never throws. */
export function parseTenant(text: string, { kind, id }: TenantRef): ParsedTenant {
  const hostile = refuseHostileYaml(text);
  if (hostile !== null) return { ok: false, problem: hostile.message };
  const document = parseDocument(text, { prettyErrors: false, stringKeys: true });
  const [fault] = [...document.errors, ...document.warnings];
  if (fault !== undefined) return { ok: false, problem: fault.message };
  const result = tenantFile.safeParse(document.toJS());
  if (!result.success) {
    const [issue] = result.error.issues;
    return { ok: false, problem: `${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`.trim() };
  }
  const { data } = result;
  if (data.id !== id) return { ok: false, problem: `id must be ${id}, as the file's name says` };
  if (kind === 'organisations' && data.organisation !== undefined) {
    return { ok: false, problem: 'only clients may have the key “organisation”' };
  }
  return {
    ok: true,
    tenant: {
      name: data.name,
      organisation: data.organisation ?? null,
      archivedAt: data.archivedAt ?? null,
      members: sorted(
        STORED_ROLES.flatMap((role) => (data.members[role] ?? []).map((subject) => ({ subject, role }))),
      ),
    },
  };
}

/** Canonical YAML, so that a diff shows only the change. */
export function formatTenant({ id }: TenantRef, tenant: Tenant): string {
  const byRole = STORED_ROLES.flatMap((role) => {
    const having = sorted(tenant.members).filter((member) => member.role === role);
    return having.length === 0 ? [] : [[role, having.map(({ subject }) => subject)]];
  });
  const file = {
    version: 1,
    id,
    name: tenant.name,
    ...(tenant.organisation === null ? {} : { organisation: tenant.organisation }),
    ...(tenant.archivedAt === null ? {} : { archivedAt: tenant.archivedAt }),
    ...(byRole.length === 0 ? {} : { members: Object.fromEntries(byRole) }),
  };
  return stringify(file, { lineWidth: 0, aliasDuplicateObjects: false });
}

/** A strong validator of all that git holds of a client or organisation, its members included. */
export function tenantTag(ref: TenantRef, tenant: Tenant): string {
  return `"${shortDigest(formatTenant(ref, tenant))}"`;
}

/** Throws `precondition_failed` if an `If-Match` doesn't match this version. A weak tag never matches. */
export function demandTenantTag(ifMatch: string | undefined, ref: TenantRef, tenant: Tenant): void {
  demandTag(ifMatch, (tag) => tag === tenantTag(ref, tenant));
}

function sorted(list: readonly Member[]): Member[] {
  return list.toSorted((a, b) => (a.subject < b.subject ? -1 : 1));
}
