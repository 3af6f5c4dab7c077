import { expect, test } from 'vitest';
import { dollars, fieldName } from '../../../management/console/app/text/format.ts';

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

test.each([
  ['domains.0', 'Domain'],
  ['domains.1', 'Domain 2'],
  ['webTagIds.acme.example', 'Web tag id of acme.example'],
  ['containerConfigB64', 'Container configuration'],
  ['modules.server_proxy.paths.0', 'Modules › Server proxy › Paths › 1'],
])('the field %s of a request is called %s', (path, name) => {
  expect(fieldName(path)).toBe(name);
});
