import { styleText } from 'node:util';

interface ShownCheck {
  readonly name: string;
  readonly status: 'passed' | 'failed' | 'skipped';
  readonly detail: string;
  readonly fix: string | null;
}

const COLOUR = { passed: 'green', failed: 'red', skipped: 'yellow' } as const;

/** One check with its remedy. */
export function renderCheck({ name, status, detail, fix }: ShownCheck): string {
  const head = `${styleText(COLOUR[status], status.padEnd(7))} ${styleText('bold', name.padEnd(17))} ${detail}\n`;
  return fix === null ? head : `${head}        → ${fix}\n`;
}

/** The checks that did not pass. */
export function renderChecks(checks: readonly ShownCheck[]): string {
  return checks
    .filter(({ status }) => status !== 'passed')
    .map(renderCheck)
    .join('');
}
