import { createHash } from 'node:crypto';
import type { ManifestView } from '../db/database.ts';
import type { ContainerView } from './containers.schema.ts';

/**
 * `"<what git holds>.<all that is answered>"`, a strong validator. A change asks only for the first part to be as it was
 * read: that a status has moved meanwhile is no reason to refuse it.
 */
export function etagOf(manifest: ManifestView, view: ContainerView): string {
  return `"${digest(manifest)}.${digest(view)}"`;
}

/** Whether an `If-Match` speaks of a container with this manifest (RFC 9110, 13.1.1). */
export function isMatch(ifMatch: string, manifest: ManifestView): boolean {
  if (ifMatch.trim() === '*') return true;
  const wanted = digest(manifest);
  return ifMatch.split(',').some((tag) => tag.trim().startsWith(`"${wanted}.`));
}

function digest(value: object): string {
  return createHash('sha256').update(canonical(value)).digest('hex').slice(0, 16);
}

/** The database keeps members in an order of its own. */
function canonical(value: object): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
