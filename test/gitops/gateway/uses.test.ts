import { expect, test } from 'vitest';
import { formatReport, readReport } from '../../../gitops/delivery/report.ts';
import { ReportedUses } from '../../../gitops/gateway/uses.ts';

const PREVIEW = 'sites/tag-acme-preview';

const lease = (name: string, resourceVersion: string, annotations: Record<string, string>) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease' as const,
  metadata: { name, resourceVersion, annotations },
  // No time in a Lease counts.
  spec: { renewTime: '2100-01-01T00:00:00.000000Z' },
});
const report = (unused: Record<string, number>) =>
  formatReport({ delivered: 'x', generation: '1', ready: true, refused: {}, unused, failed: {} });

test('the age of a use counts from the time at which this gateway saw the Lease change last', () => {
  const uses = new ReportedUses();
  const first = lease('one', '1', report({ [PREVIEW]: 30 }));
  expect(uses.latest([first], 100_000)).toEqual(new Map([[PREVIEW, 70_000]]));
  // The Lease of a gateway that has ended doesn't change any more.
  expect(uses.latest([first], 900_000)).toEqual(new Map([[PREVIEW, 70_000]]));
  const renewed = lease('one', '2', report({ [PREVIEW]: 0 }));
  expect(uses.latest([renewed], 905_000)).toEqual(new Map([[PREVIEW, 905_000]]));
});

test('of several gateways, the latest use counts', () => {
  const uses = new ReportedUses();
  const leases = [10, 2, 20].map((age, index) => lease(`gateway-${index}`, '1', report({ [PREVIEW]: age })));
  expect(uses.latest(leases, 60_000)).toEqual(new Map([[PREVIEW, 58_000]]));
});

test('a use that a gateway of an earlier version reports with a time counts as a use now', () => {
  const { 'tagyard/gateway-unused': _, ...annotations } = report({});
  const old = lease('old', '1', { ...annotations, 'tagyard/gateway-used': `{"${PREVIEW}":1767225600}` });
  expect(readReport(old)?.unused).toEqual({ [PREVIEW]: 0 });
  const uses = new ReportedUses();
  expect(uses.latest([old], 5_000)).toEqual(new Map([[PREVIEW, 5_000]]));
  expect(uses.latest([old], 25_000)).toEqual(new Map([[PREVIEW, 5_000]]));
});

test('a use with a negative age is ignored', () => {
  const forged = lease('forged', '1', { ...report({}), 'tagyard/gateway-unused': `{"${PREVIEW}":-900}` });
  expect(new ReportedUses().latest([forged], 5_000)).toEqual(new Map());
});
