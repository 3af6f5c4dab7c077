import { expect, test } from 'vitest';
import { findingsOf } from '../../../gitops/cli/findings.ts';
import {
  CERTIFICATE_STATES,
  type CertificateState,
  REASONS,
  type Reason,
  type ShownSite,
} from '../../../gitops/report/report.ts';

const REASON_NAMES = Object.keys(REASONS) as Reason[]; // Object.keys widens the keys

function site(reason: Reason, ...states: CertificateState[]): ShownSite {
  return {
    site: 'shop',
    host: 'home',
    desired: null,
    applied: 'r1',
    attempted: null,
    ready: reason === 'Ready',
    reason,
    message: 'the message',
    health: 'healthy',
    resources: [
      { target: 'dns', key: 'shop.example.net', state: 'failed', hash: null },
      ...states.map((state, number) => ({
        target: 'certificate' as const,
        key: `name${number}.example.net`,
        state,
        reason: `why ${state}`,
        issuer: null,
        notAfter: null,
        addresses: null,
        nextCheck: null,
      })),
    ],
  };
}

test.each(['Ready', 'Removed'] as const)('%s is no problem', (reason) => {
  expect(findingsOf(site(reason, 'live'))).toEqual([]);
});

test.each(REASON_NAMES.filter((reason) => reason !== 'Ready' && reason !== 'Removed'))(
  '%s is the only problem shown, with message, meaning and remedy, even if a certificate is bad, too',
  (reason) => {
    expect(findingsOf(site(reason, 'expired'))).toEqual([
      {
        site: 'shop',
        reason,
        message: 'the message',
        meaning: REASONS[reason],
        remedy: expect.stringMatching(/^[A-Z].*\.$/),
      },
    ]);
  },
);

test('a first manifest that is invalid leaves nothing applied', () => {
  const [found] = findingsOf({ ...site('InvalidManifest'), applied: null });
  expect(found?.meaning).toBe('its manifest is refused, and nothing of it was applied before');
});

test.each(['failing', 'change_refused'] as const)('a state %s of management is a problem, too', (name) => {
  const words = { sentence: 'It isn’t well.', detail: 'why', remedy: 'Do this.' };
  const state = { name, ...words, also: [] };
  for (const reason of ['Ready', 'Removed'] as const) {
    const also = { ...state, name: 'waits_for_dns' as const, also: [name] };
    for (const one of [state, also])
      expect(findingsOf({ ...site(reason), state: one })).toEqual([
        {
          ...{ site: 'shop', reason: one.name, message: 'why' },
          ...{ meaning: words.sentence, remedy: words.remedy },
        },
      ]);
  }
  expect(findingsOf({ ...site('Ready'), state: { ...state, name: 'serving' } })).toEqual([]);
});

test.each(CERTIFICATE_STATES.filter((state) => state !== 'live'))(
  'a ready site’s certificate in the state %s is a problem',
  (state) => {
    expect(findingsOf(site('Ready', 'live', state))).toEqual([
      {
        site: 'shop',
        reason: state,
        message: `name1.example.net: why ${state}`,
        meaning: expect.stringMatching(/^the /),
        remedy: expect.stringMatching(/^[A-Z].*\.$/),
      },
    ]);
  },
);

test('a site has one problem per bad certificate', () => {
  const findings = findingsOf(site('Ready', 'expired', 'live', 'pending_dns'));
  expect(findings.map(({ reason }) => reason)).toEqual(['expired', 'pending_dns']);
});
