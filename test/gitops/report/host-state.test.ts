import { expect, test } from 'vitest';
import { initialStatus } from '../../../gitops/loop/conditions.ts';
import { hostState } from '../../../gitops/report/host-state.ts';
import type { SiteCondition } from '../../../gitops/report/site-condition.ts';

const unseen = initialStatus('shop', 'tag-1');
const served = { ...unseen, applied: 'r1', ready: true, reason: 'Ready' } as const;
const refusal = 'InvalidManifest: shop.yaml: nmae: unknown key';
const refused = { reason: 'InvalidManifest', message: 'shop.yaml: nmae: unknown key', refusal } as const;
const unhealthy = { reason: 'Unhealthy', message: 'processing server 0 fails' } as const;
const blocked = {
  reason: 'Blocked',
  message: 'no site of this host; to approve: tagyard approve a3d6',
} as const;
const heldRemoval = `Blocked: ${blocked.message}`;
const conditions: SiteCondition[] = [{ condition: 'preview_failed', message: 'no answer' }];

test.each([
  ['that is ready', served, { name: 'serving', also: [], detail: null }, 'healthy'],
  [
    'whose manifest is refused',
    { ...served, ...refused },
    { name: 'change_refused', also: ['serving'], detail: refusal },
    'healthy',
  ],
  [
    'whose manifest is refused while a server fails',
    { ...served, ...refused, ...unhealthy },
    { name: 'failing', also: ['change_refused'], detail: 'Unhealthy: processing server 0 fails' },
    'degraded',
  ],
  [
    'whose first manifest is refused',
    { ...unseen, ...refused },
    { name: 'change_refused', also: ['setting_up'], detail: refusal },
    'unknown',
  ],
  [
    'that is refused by a host of an older version',
    { ...served, ...refused, refusal: undefined },
    { name: 'change_refused', also: ['serving'], detail: refusal },
    'healthy',
  ],
  [
    'of which one of several servers fails',
    { ...served, ...unhealthy, partial: true },
    { name: 'serving', also: [], detail: 'Unhealthy: processing server 0 fails' },
    'degraded',
  ],
  [
    'whose preview server doesn’t start',
    { ...served, conditions },
    { name: 'serving', also: [], detail: 'preview_failed: no answer' },
    'degraded',
  ],
  [
    'that is suspended while one of several servers fails',
    { ...served, ...unhealthy, partial: true, suspended: true },
    { name: 'paused', also: ['serving'], detail: 'Unhealthy: processing server 0 fails' },
    'degraded',
  ],
  [
    'that waits for a certificate',
    { ...served, reason: 'CertificatePending', message: 'shop.example: no record' },
    { name: 'failing', also: [], detail: 'CertificatePending: shop.example: no record' },
    'degraded',
  ],
  [
    'whose removal waits for an approval',
    { ...served, ...blocked, heldRemoval },
    { name: 'change_refused', also: ['serving'], detail: heldRemoval },
    'healthy',
  ],
  [
    'whose removal waits, and whose server fails',
    { ...served, ...unhealthy, heldRemoval },
    { name: 'failing', also: ['change_refused'], detail: 'Unhealthy: processing server 0 fails' },
    'degraded',
  ],
  [
    'of which a guard holds another change',
    { ...served, ...blocked },
    { name: 'failing', also: [], detail: heldRemoval },
    'degraded',
  ],
  [
    'that is being removed',
    { ...served, ...refused, reason: 'Removing' },
    { name: 'removed', also: [] },
    'unknown',
  ],
  ['that is removed', { ...served, reason: 'Removed' }, { name: 'removed', also: [] }, 'unknown'],
] as const)('a host says of a site %s', (_what, site, state, health) => {
  expect(hostState(site)).toMatchObject({ state, health });
});
