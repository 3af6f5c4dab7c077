import { expect, test } from 'vitest';
import { lostPod } from '../../../../gitops/kubernetes/applier/state/lost-pod.ts';

const at = (second: number) => `2026-01-01T00:00:0${second}Z`;
/** The pod's condition since this second. */
const ready = (status: 'True' | 'False', second: number) => [
  { type: 'Initialized', status: 'True', lastTransitionTime: at(0) },
  { type: 'Ready', status, lastTransitionTime: at(second) },
];
const runningSince = (second: number) => ({ state: { running: { startedAt: at(second) } } });
const ended = { terminated: { startedAt: at(1), exitCode: 137 } };

function pod(status: object, metadata: object = {}) {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'one', ...metadata }, status } as const;
}

const STOPPED = { conditions: ready('False', 5), containerStatuses: [{ ready: false, ...runningSince(1) }] };

test.each([
  ['whose process doesn’t answer any more', STOPPED, 'it fails its health check, GET /healthz'],
  [
    'whose process has ended',
    { conditions: ready('False', 5), containerStatuses: [{ ready: false, state: ended }] },
    'its process ended with 137',
  ],
  [
    'whose process was started again',
    {
      conditions: ready('False', 5),
      containerStatuses: [{ ready: false, ...runningSince(6), lastState: ended }],
    },
    'its process ended with 137',
  ],
  [
    'of a node that is lost',
    { conditions: ready('False', 5), containerStatuses: [{ ready: true, ...runningSince(1) }] },
    'its node doesn’t report any more',
  ],
])('a pod %s is lost', (_, status, why) => {
  expect(lostPod(pod(status))).toEqual({ name: 'one', since: at(5), why });
});

test.each([
  ['serves', { conditions: ready('True', 5), containerStatuses: [{ ready: true, ...runningSince(1) }] }],
  ['has no container yet', { conditions: ready('False', 0) }],
  ['starts', { conditions: ready('False', 0), containerStatuses: [{ ready: false, ...runningSince(1) }] }],
  [
    'has never served, and ends again and again',
    { conditions: ready('False', 0), containerStatuses: [{ ready: false, state: {}, lastState: ended }] },
  ],
  ['was evicted', { ...STOPPED, phase: 'Failed' }],
])('a pod that %s is not lost', (_, status) => {
  expect(lostPod(pod(status))).toBeNull();
});

test('a pod that is deleted is not lost', () => {
  expect(lostPod(pod(STOPPED, { deletionTimestamp: at(6) }))).toBeNull();
});
