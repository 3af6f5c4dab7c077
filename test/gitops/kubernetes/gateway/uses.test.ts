import { expect, test } from 'vitest';
import { formatReport, readReport } from '../../../../gitops/kubernetes/delivery/report.ts';
import { ReportedUses } from '../../../../gitops/kubernetes/gateway/uses.ts';

const PREVIEW = 'sites/tag-acme-preview';

const lease = (name: string, resourceVersion: string, annotations: Record<string, string>) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease' as const,
  metadata: { name, resourceVersion, annotations },
  // The times in a Lease don't count.
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

test('a use stated as a time, by a gateway of an earlier version, counts as new when first seen', () => {
  const { 'tagyard/gateway-unused': _, ...annotations } = report({});
  const old = lease('old', '1', { ...annotations, 'tagyard/gateway-used': `{"${PREVIEW}":1767225600}` });
  expect(readReport(old)?.unused).toEqual({ [PREVIEW]: 0 });
  const uses = new ReportedUses();
  expect(uses.latest([old], 5_000)).toEqual(new Map([[PREVIEW, 5_000]]));
  expect(uses.latest([old], 25_000)).toEqual(new Map([[PREVIEW, 5_000]]));
});

test('of too many uses, a report names only the latest, so that a Lease can hold it', () => {
  const longest = (kind: string, index: number, length: number) => `${kind}${index}`.padEnd(length, '-');
  const entries = <Value>(kind: string, length: number, value: (index: number) => Value) =>
    Object.fromEntries(
      Array.from({ length: 2_000 }, (_, index) => [longest(kind, index, length), value(index)]),
    );
  const annotations = formatReport({
    delivered: 'x',
    generation: '1',
    ready: true,
    refused: entries('secret', 253, () => 'w'.repeat(1_000)),
    unused: entries('use', 127, (index) => 2_000 - index),
    failed: entries('start', 127, (number) => ({ number, reason: 'w'.repeat(1_000) })),
  });
  const { unused = {} } = readReport(lease('one', '1', annotations)) ?? {};
  expect(Object.values(unused)).toEqual(Array.from({ length: 500 }, (_, index) => index + 1));
  // Source: k8s.io/apimachinery, pkg/api/validation, TotalAnnotationSizeLimitB.
  expect(Object.entries(annotations).flat().join('').length).toBeLessThan(256 * 1024);
});

test('a use with a negative age is ignored', () => {
  const forged = lease('forged', '1', { ...report({}), 'tagyard/gateway-unused': `{"${PREVIEW}":-900}` });
  expect(new ReportedUses().latest([forged], 5_000)).toEqual(new Map());
});
