import { expect, test } from 'vitest';
import { isChange } from '../../../management/sites/host-watch.ts';

const well = { host_reason: null, host_detail: null, host_refusal: null } as const;
const troubled = { ...well, host_reason: 'host_trouble', host_detail: 'Failed: why' } as const;
const suspended = { ...well, host_reason: 'suspended', host_detail: 'waits' } as const;
const trouble = { reason: 'host_trouble', detail: 'Failed: why' } as const;

test.each([
  ['nothing as before', well, { obstacle: null }, false],
  ['new trouble', well, { obstacle: trouble }, true],
  ['the same trouble', troubled, { obstacle: trouble }, false],
  ['other trouble', troubled, { obstacle: { ...trouble, detail: 'Failed: other' } }, true],
  ['the end of trouble', troubled, { obstacle: null }, true],
  ['trouble of some servers only', troubled, { obstacle: { ...trouble, reason: 'host_partial' } }, true],
  ['the end of a suspension', suspended, { obstacle: null }, true],
  ['the same suspension', suspended, { obstacle: { reason: 'suspended', detail: 'waits' } }, false],
  ['a suspension after trouble', troubled, { obstacle: { ...trouble, reason: 'suspended' } }, true],
  [
    'a refusal behind the same trouble',
    troubled,
    { obstacle: trouble, refusal: 'InvalidManifest: a.yaml' },
    true,
  ],
] as const)('a verdict changes what a container shows, with %s: $3', (_what, row, verdict, expected) => {
  expect(isChange(row, { refusal: null, ...verdict })).toBe(expected);
});
