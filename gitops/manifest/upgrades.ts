/** Makes a manifest of one version one of the next: renames, splits and fills in; `version` is counted up beside it. */
export type Upgrade = (manifest: Readonly<Record<string, unknown>>) => Record<string, unknown>;

/**
 * From version 1 to 2 first, and so on to the one that the schema knows; none while there is one version only. A file
 * keeps the version that it was written in until somebody writes it anew, so that an upgrade of Tagyard is no commit.
 */
export const UPGRADES: readonly Upgrade[] = [];

/** Any older manifest as one of the newest version; what is no manifest at all is left to the schema. */
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
