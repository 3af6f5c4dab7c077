import { hash } from 'node:crypto';
import { canonicalJson } from '../../base/canonical-json.ts';
import type { ManifestView } from '../db/manifest-view.ts';
import { ManagementProblem } from '../http/errors.ts';
import type { ContainerView } from './container-view.ts';

/** One tag of a list. The first group matches only for weak tags (RFC 9110, 8.8.3). */
const TAGS = /(W\/)?("[^"]*")/g;

/**
 * `"<manifest>.<whole answer>"`, a strong validator of two digests. `If-Match` compares only the first digest, so that
 * a change isn't refused merely because the status has changed since the caller read the container.
 */
export function containerEtag(manifest: ManifestView, view: ContainerView): string {
  return `"${manifestDigest(manifest)}.${shortDigest(JSON.stringify(view))}"`;
}

/**
 * Throws `precondition_failed` unless an `If-Match` names a container with this manifest. The comparison is strong: a
 * weak tag never matches (RFC 9110, 13.1.1). Without the header, nothing is compared.
 */
export function demandMatch(ifMatch: string | undefined, manifest: ManifestView): void {
  const current = manifestDigest(manifest);
  demandTag(ifMatch, (tag) => tag.startsWith(`"${current}.`));
}

/** Throws `precondition_failed` if an `If-Match` has neither `*` nor a strong tag that is current. */
export function demandTag(ifMatch: string | undefined, isCurrent: (tag: string) => boolean): void {
  if (ifMatch === undefined || ifMatch.trim() === '*') return;
  const tags = [...ifMatch.matchAll(TAGS)].map(([, weak, tag = '']) => ({ isWeak: weak !== undefined, tag }));
  if (tags.some(({ isWeak, tag }) => !isWeak && isCurrent(tag))) return;
  throw new ManagementProblem('precondition_failed', {
    detail: tags.some(({ isWeak }) => isWeak)
      ? 'a weak tag never matches in If-Match; a proxy that compresses answers makes tags weak: send the tag without W/'
      : undefined,
  });
}

/** Whether an `If-None-Match` names this tag. The comparison is weak (RFC 9110, 13.1.2). */
export function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.trim() === '*' || [...ifNoneMatch.matchAll(TAGS)].some(([, , tag]) => tag === etag);
}

/** A digest of canonical JSON, because git and the database keep the members in different orders. */
function manifestDigest(manifest: ManifestView): string {
  return shortDigest(canonicalJson(manifest));
}

/** 64 bits of a text's SHA-256, in hexadecimal, for a tag. */
export function shortDigest(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 16);
}
