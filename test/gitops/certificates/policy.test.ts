import { describe, expect, test } from 'vitest';
import {
  type CertificateVerdict,
  dnsFault,
  type Facts,
  judgeCertificate,
  renewalAt,
} from '../../../gitops/certificates/policy.ts';

const NOW = Date.UTC(2026, 10, 21, 12);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const HERE = { addresses: ['198.51.100.4'], alias: null };
const AWAY = { addresses: ['192.0.2.9'], alias: null };
const NOWHERE = { addresses: [], alias: null };
const UNKNOWN = new Error('metrics.acme.example can’t be checked (ESERVFAIL)');
const WRONG =
  'metrics.acme.example resolves to 192.0.2.9; it must be 198.51.100.4 or a CNAME to acme-origin.example.net';

/** A certificate of 90 days that was issued `days` days ago. */
const aged = (days: number) => ({ notBefore: NOW - days * DAY, notAfter: NOW + (90 - days) * DAY });
const failed = (minutes: number) => ({ message: 'the authority is down', retryAt: NOW + minutes * MINUTE });

const facts = (some: Partial<Facts>): Facts => ({
  host: 'metrics.acme.example',
  expected: { addresses: ['198.51.100.4'], alias: 'acme-origin.example.net' },
  dns: HERE,
  caa: null,
  certificate: null,
  failure: null,
  since: NOW,
  fraction: 0,
  ...some,
});

describe('a name', () => {
  const rows: readonly (readonly [string, Partial<Facts>, Partial<CertificateVerdict>])[] = [
    [
      'waits for a record',
      { dns: NOWHERE },
      {
        state: 'pending_dns',
        reason:
          'metrics.acme.example has no address; it must be 198.51.100.4 or a CNAME to acme-origin.example.net',
        order: false,
        nextAt: NOW + 2_000,
      },
    ],
    ['waits for the right record', { dns: AWAY }, { state: 'pending_dns', reason: WRONG, order: false }],
    [
      'waits for DNS to answer',
      { dns: UNKNOWN },
      { state: 'pending_dns', reason: UNKNOWN.message, order: false },
    ],
    ['orders once it resolves to this host', {}, { state: 'pending_certificate', order: true }],
    [
      'waits after a failed order',
      { failure: failed(10) },
      {
        state: 'pending_certificate',
        reason: 'the authority is down; next attempt at 2026-11-21T12:10Z',
        order: false,
        nextAt: NOW + 10 * MINUTE,
      },
    ],
    ['orders again after the pause', { failure: failed(0) }, { order: true }],
    [
      'reports wrong DNS rather than a failed order',
      { dns: AWAY, failure: failed(10) },
      { state: 'pending_dns', reason: WRONG },
    ],
    [
      'is not ordered against its CAA records',
      { caa: 'no' },
      { state: 'pending_certificate', reason: 'no', order: false },
    ],
    [
      'names both DNS and CAA records',
      { dns: AWAY, caa: 'no' },
      { state: 'pending_dns', reason: `${WRONG}; no` },
    ],
    [
      'is not renewed against its CAA records, and says so',
      { caa: 'no', certificate: aged(80) },
      { state: 'live', order: false, reason: 'due for renewal, ends on 2026-12-01; no' },
    ],
    [
      'is checked within a pause, in case its DNS changes',
      { failure: failed(600) },
      { order: false, nextAt: NOW + 10 * MINUTE },
    ],
    [
      'is live, and checked again in hours',
      { certificate: aged(1) },
      { state: 'live', reason: '', order: false, nextAt: NOW + 6 * HOUR },
    ],
    [
      'is checked at the time of its renewal',
      { certificate: { notBefore: NOW - 60 * DAY + HOUR, notAfter: NOW + 30 * DAY + HOUR } },
      { state: 'live', order: false, nextAt: NOW + HOUR },
    ],
    [
      'is live while it is renewed',
      { certificate: aged(60) },
      { state: 'live', reason: 'due for renewal, ends on 2026-12-21', order: true },
    ],
    [
      'is live while its renewal fails',
      { certificate: aged(61), failure: failed(30) },
      {
        state: 'live',
        reason:
          'due for renewal, ends on 2026-12-20; the authority is down; next attempt at 2026-11-21T12:30Z',
        order: false,
        nextAt: NOW + 10 * MINUTE,
      },
    ],
    [
      'is live while DNS doesn’t answer',
      { certificate: aged(1), dns: UNKNOWN },
      { state: 'live', reason: '', order: false },
    ],
    [
      'isn’t renewed while DNS doesn’t answer',
      { certificate: aged(61), dns: UNKNOWN },
      { state: 'live', order: false },
    ],
    [
      'has drifted where DNS leads elsewhere',
      { certificate: aged(61), dns: AWAY },
      { state: 'drifted', reason: `${WRONG}; its certificate ends on 2026-12-20`, order: false },
    ],
    [
      'has an expired certificate, and orders another',
      { certificate: aged(90) },
      {
        state: 'expired',
        reason: 'the certificate ended on 2026-11-21; a certificate is being ordered',
        order: true,
      },
    ],
    [
      'has an expired certificate because of its DNS',
      { certificate: aged(91), dns: AWAY },
      { state: 'expired', reason: `the certificate ended on 2026-11-20; ${WRONG}`, order: false },
    ],
    [
      'is checked when the certificate ends, even during a pause',
      { certificate: { notBefore: NOW - 89 * DAY, notAfter: NOW + 5 * MINUTE }, failure: failed(600) },
      { state: 'live', nextAt: NOW + 5 * MINUTE },
    ],
  ];
  test.each(rows)('%s', (_case, some, expected) => {
    expect(judgeCertificate(facts(some), NOW)).toMatchObject(expected);
  });

  test.each([
    [0, 2_000],
    [8_000, 2_000],
    [4 * MINUTE, MINUTE],
    [40 * MINUTE, 10 * MINUTE],
    [7 * DAY, 10 * MINUTE],
  ])('is checked less and less often: after %i ms without a change, again in %i ms', (age, pause) => {
    const { nextAt } = judgeCertificate(facts({ dns: NOWHERE, since: NOW - age }), NOW);
    expect(nextAt - NOW).toBe(pause);
  });
});

describe('renewal of a certificate', () => {
  test.each([
    [0, 30],
    [0.5, 31.5],
    [1, 33],
  ])('that lasts 90 days, with a jitter of %d, is due %d days before its end', (fraction, left) => {
    const certificate = aged(0);
    expect((certificate.notAfter - renewalAt(certificate, fraction)) / DAY).toBeCloseTo(left, 6);
  });

  test.each([
    [6, 2],
    [365, 365 / 3],
  ])('that lasts %d days is due with a third of its life left', (days, left) => {
    const certificate = { notBefore: NOW, notAfter: NOW + days * DAY };
    expect((certificate.notAfter - renewalAt(certificate, 0)) / DAY).toBeCloseTo(left, 6);
  });
});

describe('DNS', () => {
  const expected = { addresses: ['198.51.100.4', '2001:db8::4'], alias: 'acme-origin.example.net' };
  const must = '198.51.100.4 or 2001:db8::4 or a CNAME to acme-origin.example.net';
  test.each([
    ['one of the addresses', ['198.51.100.4'], null, null],
    ['all of the addresses', ['198.51.100.4', '2001:db8::4'], null, null],
    ['an alias of the host', ['198.51.100.4'], 'acme-origin.example.net', null],
    // An authority prefers IPv6 and would not reach this host.
    [
      'one of the addresses and a foreign IPv6 address',
      ['198.51.100.4', '2001:db8::9'],
      null,
      `a.example resolves to 2001:db8::9; remove the left-over record AAAA 2001:db8::9; it must be ${must}`,
    ],
    [
      'Cloudflare’s proxy before it',
      ['104.21.3.4', '2606:4700:3030::1'],
      null,
      `a.example resolves to 104.21.3.4, 2606:4700:3030::1; Cloudflare’s proxy answers there: set the record to “DNS only”; it must be ${must}`,
    ],
    [
      'an alias to nowhere',
      [],
      'gone.example',
      `a.example is a CNAME to gone.example, which has no address; it must be ${must}`,
    ],
  ])('with %s: the fault is $3', (_case, addresses, alias, fault) => {
    expect(dnsFault('a.example', { addresses, alias }, expected)).toBe(fault);
  });

  test('of a site’s own name must have an address of the host', () => {
    expect(dnsFault('a.example', AWAY, { ...expected, addresses: ['198.51.100.4'], alias: null })).toBe(
      'a.example resolves to 192.0.2.9; it must be 198.51.100.4',
    );
  });
});
