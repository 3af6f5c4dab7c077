/** Converts a manifest to the next version (renames, splits, new keys), apart from the key `version`. */
export type Upgrade = (manifest: Readonly<Record<string, unknown>>) => Record<string, unknown>;

/**
 * The upgrade from version 1 to 2 first, then from 2 to 3, up to the version of the schema. A file keeps its version until
 * it is edited: an upgrade of Tagyard makes no commit.
 */
export const UPGRADES: readonly Upgrade[] = [];

/** Upgrades an older manifest to the newest version. Other values are returned unchanged; the schema judges them. */
export function upgradeManifest(value: unknown, upgrades: readonly Upgrade[] = UPGRADES): unknown {
  let current = value;
  for (const [index, upgrade] of upgrades.entries()) {
    if (!isRecord(current) || current.version !== index + 1) continue;
    current = { ...upgrade(current), version: index + 2 };
  }
  return current;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
