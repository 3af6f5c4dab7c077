import { hash } from 'node:crypto';
import { canonicalJson } from '../../gitops/base/canonical-json.ts';
import type { ManifestView } from '../db/manifest-view.ts';
import type { ContainerView } from '../view/container-view.ts';

/**
 * `"<manifest>.<whole answer>"`, a strong validator of two digests. A change compares only the first one: it isn't
 * refused because the status has changed since the caller read the container.
 */
export function containerEtag(manifest: ManifestView, view: ContainerView): string {
  return `"${manifestDigest(manifest)}.${digest(JSON.stringify(view))}"`;
}

/** Whether an `If-Match` names a container with this manifest (RFC 9110, 13.1.1). */
export function isMatch(ifMatch: string, manifest: ManifestView): boolean {
  if (ifMatch.trim() === '*') return true;
  const current = manifestDigest(manifest);
  return ifMatch.split(',').some((tag) => tag.trim().startsWith(`"${current}.`));
}

/** Over canonical JSON, because git and the database keep the members in different orders. */
function manifestDigest(manifest: ManifestView): string {
  return digest(canonicalJson(manifest));
}

function digest(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 16);
}
