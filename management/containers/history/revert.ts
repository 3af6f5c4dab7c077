import {
  type Manifest,
  type ManifestInput,
  manifestSchema,
  operatorOnly,
} from '../../../sites/manifest/schema.ts';
import { isOperator } from '../../access/tenants.ts';
import type { Actor } from '../../db/database.ts';
import { ManagementProblem } from '../../http/errors.ts';
import { claimedNames } from '../../records/sites.repository.ts';
import { planOf } from '../../view/plan.ts';
import { demandImage, demandResources, type ImageSettings } from '../image.ts';
import { undo } from './undo.ts';

/** A commit's manifests before and after it. */
interface CommitVersions {
  readonly before: Manifest;
  readonly after: Manifest;
}

/**
 * The manifest with a commit undone. Throws `revert_conflict`, `forbidden` where the commit changed what only operators
 * may change, or `image_not_allowed`.
 */
export function reverted(
  current: Manifest,
  { before, after }: CommitVersions,
  caller: Actor,
  settings: ImageSettings,
): ManifestInput {
  const { value, conflicts } = undo(current, before, after);
  if (conflicts.length > 0) {
    throw new ManagementProblem('revert_conflict', {
      detail: `later commits have changed ${conflicts.join(', ')}`,
      errors: conflicts.map((path) => ({ path, message: 'has been changed since that commit' })),
    });
  }
  const result = value as Manifest; // made of members of the three manifests
  const changes = planOf(operatorKeys(current), operatorKeys(result)).changes;
  const paths = changes.map(({ path }) => path);
  if (paths.length > 0 && !isOperator({ settings }, caller)) {
    throw new ManagementProblem('forbidden', { detail: `only an operator may change ${paths.join(', ')}` });
  }
  demandImage(result.image, current.image, caller, settings);
  // A tenant's revert may not raise resources above the greater of the tenants' limit and the current values.
  demandResources(result.resources, current.resources, caller, settings);
  return result;
}

/** The names that a revert adds again: those that the commit removed. Names that it kept may be others' by now. */
export function addedNames({ before, after }: CommitVersions): string[] {
  const kept = claimedNames(after);
  return claimedNames(before).filter((name) => !kept.includes(name));
}

function operatorKeys(manifest: Manifest): object {
  const { shape } = manifestSchema;
  const isOne = (key: string) => operatorOnly.has(shape[key as keyof Manifest]);
  return Object.fromEntries(Object.entries(manifest).filter(([key]) => isOne(key)));
}
