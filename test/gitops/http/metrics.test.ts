import { afterEach, beforeEach, expect, test } from 'vitest';
import type { CertificateStatus } from '../../../gitops/report/report.ts';
import { type MemoryDaemon, memoryDaemon, SECRET } from '../../support/gitops/memory-daemon.ts';

let daemon: MemoryDaemon;
beforeEach(async () => {
  daemon = await memoryDaemon();
});
afterEach(() => daemon.close());

const DAY_MS = 86_400_000;
const at = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();
const certificate = (key: string, days: [from: number, to: number] | null): CertificateStatus => ({
  ...{
    target: 'certificate',
    key,
    state: 'live',
    reason: '',
    issuer: 'a CA',
    addresses: null,
    nextCheck: null,
  },
  ...{ notBefore: days && at(days[0]), notAfter: days && at(days[1]) },
});

test('name a site’s state, its certificate that ends first, and the last pass', async () => {
  daemon.control.certificates = (site) =>
    site === 'one'
      ? [
          certificate('due.example', [-60, 30]),
          certificate('short.example', [-4, 2]),
          certificate('year.example', [-305, 60]),
          certificate('bad.example', [-80, 10]),
          certificate('none.example', null),
        ]
      : [];
  await daemon.call('POST', '/provision?wait=10', daemon.manifest('one', 1));
  await daemon.call('POST', '/provision?wait=10', daemon.manifest('two', 2));
  await daemon.call('POST', '/deprovision?wait=10', { site: 'two' });
  const { body } = await daemon.app.inject({ url: '/metrics', headers: { 'x-secret': SECRET } });
  const value = (series: string) => {
    const line = body.split('\n').find((one) => one.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.slice(series.length + 1));
  };
  expect(value('tagyard_site_state{site="one",state="serving"}')).toBe(1);
  expect(value('tagyard_site_state{site="one",state="failing"}')).toBeUndefined();
  expect(value('tagyard_site_state{site="two",state="removed"}')).toBe(1);
  const end = value('tagyard_certificate_end_timestamp_seconds{site="one"}') ?? 0;
  expect((end - Date.now() / 1000) / 86_400).toBeCloseTo(2, 2);
  expect(value('tagyard_certificates_ending{site="one"}')).toBe(1);
  expect(value('tagyard_certificates_ending{site="two"}')).toBeUndefined();
  expect(Date.now() / 1000 - (value('tagyard_last_pass_timestamp_seconds') ?? 0)).toBeLessThan(60);
  expect(value('tagyard_last_pass_seconds')).toBeGreaterThan(0);
  expect(value('tagyard_last_pass_failed')).toBe(0);
  expect(value('tagyard_pass_running_seconds')).toBeGreaterThanOrEqual(0);
});
