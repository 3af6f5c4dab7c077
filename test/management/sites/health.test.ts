import { expect, test } from 'vitest';
import { isHealthChange } from '../../../management/sites/host-watch.ts';

const well = { health: 'healthy', status_reason: null, status_detail: null } as const;
const troubled = { health: 'degraded', status_reason: 'host_trouble', status_detail: 'Failed: why' } as const;

test.each([
  ['the same health', well, { health: 'healthy', trouble: null }, false],
  ['another health', well, { health: 'degraded', trouble: null }, true],
  [
    'new trouble',
    { ...well, health: 'degraded' } as const,
    { health: 'degraded', trouble: 'Failed: why' },
    true,
  ],
  ['the same trouble', troubled, { health: 'degraded', trouble: 'Failed: why' }, false],
  ['other trouble', troubled, { health: 'degraded', trouble: 'Failed: other' }, true],
  ['the end of trouble, still degraded', troubled, { health: 'degraded', trouble: null }, true],
  [
    'trouble beside another reason',
    { health: 'degraded', status_reason: 'port_taken', status_detail: 'a' } as const,
    { health: 'degraded', trouble: 'Failed: why' },
    false,
  ],
] as const)('%s', (_what, row, verdict, expected) => {
  expect(isHealthChange(row, verdict)).toBe(expected);
});
