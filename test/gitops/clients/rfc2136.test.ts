import { describe, expect, test } from 'vitest';
import { RetryableError } from '../../../base/errors.ts';
import { readTransfer } from '../../../gitops/clients/rfc2136.ts';

const SOA = 'example.net.        \t3600\tIN\tSOA\tns.example.net. admin.example.net. 1 3600 600 86400 300';
const A = 'www.example.net.    \t300\tIN\tA\t192.0.2.1';

describe('a transfer', () => {
  test('returns its records without the closing SOA', () => {
    const text = 'www.example.net.\t3600\tIN\tTXT\t"hello; \\"x\\"" "second"';
    expect(readTransfer([SOA, A, text, SOA, ''].join('\n')).slice(1)).toEqual([
      { name: 'www.example.net.', ttl: 300, type: 'A', data: '192.0.2.1' },
      { name: 'www.example.net.', ttl: 3600, type: 'TXT', data: '"hello; \\"x\\"" "second"' },
    ]);
  });

  test.each([
    ['nothing', []],
    ['no end', [SOA, A]],
    ['no beginning', [A, SOA]],
    ['one record', [SOA]],
  ])('with %s is refused', (_what, lines) => {
    expect(() => readTransfer(lines.join('\n'))).toThrow(RetryableError);
  });
});
