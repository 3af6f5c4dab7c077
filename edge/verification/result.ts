import type { Check, CheckName } from './contract.ts';

/** A check's result for one subject, without the check's name. */
export type Finding = Omit<Check, 'name'>;

export function passed(subject: string | null, detail: string, advice: string | null = null): Finding {
  return { subject, status: 'passed', detail, fix: advice };
}

export function failed(subject: string | null, detail: string, fix: string): Finding {
  return { subject, status: 'failed', detail, fix };
}

export function skipped(subject: string | null, detail: string): Finding {
  return { subject, status: 'skipped', detail, fix: null };
}

export function named(name: CheckName, { subject, status, detail, fix }: Finding): Check {
  return { name, subject, status, detail, fix };
}
