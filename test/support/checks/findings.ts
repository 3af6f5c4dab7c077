import { expect } from 'vitest';
import type { PartCheck } from '../../../gitops/report/report.ts';
import { RUNBOOKS } from '../../../gitops/report/runbooks.ts';

type Name = keyof typeof RUNBOOKS;

/** The checks of that name; there is one. */
export function checkOf(checks: readonly PartCheck[], name: Name): PartCheck {
  const found = checks.filter((check) => check.name === name);
  expect(found).toHaveLength(1);
  return found[0] as PartCheck;
}

/**
 * A finding: it has the fact, names one of the settings of its runbook, and its fix is one of the runbook's. Returns the
 * kind of the fix.
 */
export function findingOf(check: PartCheck, fact: string | RegExp): string | undefined {
  const { settings, fixes } = RUNBOOKS[check.name as Name];
  expect(check).toMatchObject({ status: 'failed', detail: expect.stringMatching(fact) });
  if (settings.length > 0) expect(settings.some((name) => check.detail.includes(name))).toBe(true);
  const kind = Object.entries(fixes).find(([, fix]) => fix === check.fix)?.[0];
  expect(kind).toBeDefined();
  return kind;
}
