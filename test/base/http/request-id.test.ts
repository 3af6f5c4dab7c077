import { expect, test } from 'vitest';
import { requestIdFrom } from '../../../base/http/request-id.ts';

test.each(['abc-123._X', 'a', 'x'.repeat(64)])('%s is kept', (given) => {
  expect(requestIdFrom({ 'x-request-id': given })).toBe(given);
});

test.each([undefined, '', 'a b', 'a%0a', 'x'.repeat(65), ['a', 'b']])(
  '%j is replaced by a new id',
  (given) => {
    expect(requestIdFrom({ 'x-request-id': given })).toMatch(/^[0-9a-f-]{36}$/);
  },
);
