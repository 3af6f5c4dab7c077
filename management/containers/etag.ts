import { hash } from 'node:crypto';
import type { ManifestView } from '../db/database.ts';
import type { ContainerView } from './containers.schema.ts';

/**
 * `"<what git holds>.<all that is answered>"`, a strong validator. A change asks only for the first part to be as it was
 * read: that a status has moved meanwhile is no reason to refuse it.
 */
export function containerEtag(manifest: ManifestView, view: ContainerView): string {
  return `"${digest(canonical(manifest))}.${digest(JSON.stringify(view))}"`;
}

/** Whether an `If-Match` speaks of a container with this manifest (RFC 9110, 13.1.1). */
export function isMatch(ifMatch: string, manifest: ManifestView): boolean {
  if (ifMatch.trim() === '*') return true;
  const wanted = digest(canonical(manifest));
  return ifMatch.split(',').some((tag) => tag.trim().startsWith(`"${wanted}.`));
}

function digest(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 16);
}

/** JSON with sorted members: git and the database each keep them in orders of their own. */
function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  const sorted = members.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${sorted.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join()}}`;
}
