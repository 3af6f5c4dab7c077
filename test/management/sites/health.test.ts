import { expect, test } from 'vitest';
import { isHealthChange } from '../../../management/sites/host-watch.ts';

const well = { health: 'healthy', host_reason: null, host_detail: null, host_refusal: null } as const;
const troubled = {
  ...well,
  health: 'degraded',
  host_reason: 'host_trouble',
  host_detail: 'Failed: why',
} as const;

test.each([
  ['the same health', well, { health: 'healthy', obstacle: null }, false],
  ['another health', well, { health: 'degraded', obstacle: null }, true],
  [
    'new trouble',
    { ...well, health: 'degraded' } as const,
    { health: 'degraded', obstacle: { reason: 'host_trouble', detail: 'Failed: why' } },
    true,
  ],
  [
    'the same trouble',
    troubled,
    { health: 'degraded', obstacle: { reason: 'host_trouble', detail: 'Failed: why' } },
    false,
  ],
  [
    'other trouble',
    troubled,
    { health: 'degraded', obstacle: { reason: 'host_trouble', detail: 'Failed: other' } },
    true,
  ],
  ['the end of trouble, still degraded', troubled, { health: 'degraded', obstacle: null }, true],
  [
    'the end of a suspension',
    { ...well, host_reason: 'suspended', host_detail: 'waits' } as const,
    { health: 'healthy', obstacle: null },
    true,
  ],
  [
    'the same suspension',
    { ...well, host_reason: 'suspended', host_detail: 'waits' } as const,
    { health: 'healthy', obstacle: { reason: 'suspended', detail: 'waits' } },
    false,
  ],
  [
    'a suspension after trouble',
    { ...troubled, health: 'healthy' } as const,
    { health: 'healthy', obstacle: { reason: 'suspended', detail: 'Failed: why' } },
    true,
  ],
  [
    'a refusal behind the same trouble',
    troubled,
    {
      health: 'degraded',
      obstacle: { reason: 'host_trouble', detail: 'Failed: why' },
      refusal: 'InvalidManifest: a.yaml',
    },
    true,
  ],
] as const)('a verdict changes what a container shows, with %s: $3', (_what, row, verdict, expected) => {
  expect(isHealthChange(row, { refusal: null, ...verdict })).toBe(expected);
});
