import { expect, test } from 'vitest';
import { dollars } from '../../../management/console/app/text/format.ts';

test.each([
  [0, '$0.00'],
  [0.00443, '$0.00443'],
  [0.0999, '$0.0999'],
  [0.09996, '$0.10'],
  [0.5, '$0.50'],
  [12.5, '$12.50'],
  [1234.5, '$1,234.50'],
])('%d US dollars are %s', (amount, text) => {
  expect(dollars(amount)).toBe(text);
});
