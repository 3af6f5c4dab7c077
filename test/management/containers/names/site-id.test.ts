import { expect, test } from 'vitest';
import { needsSuffix, slug, withSuffix } from '../../../../management/containers/names/site-id.ts';

test.each([
  ['Acme Shop', 'acme-shop'],
  ['  Crème brûlée & Söhne  ', 'creme-brulee-soehne'],
  ['Möbel Groß', 'moebel-gross'],
  ['ÄRZTE ÜBER GROẞ', 'aerzte-ueber-gross'],
  ['Mo\u0308bel', 'moebel'],
  ['Smørrebrød Æble Œuf', 'smorrebrod-aeble-oeuf'],
  ['Łódź İstanbul ığdır', 'lodz-istanbul-igdir'],
  ['a'.repeat(60), 'a'.repeat(40)],
  [`${'a'.repeat(39)} b`, 'a'.repeat(39)],
  ['漢字', 'site'],
  ['--', 'site'],
])('the site id of %s is %s', (name, expected) => {
  expect(slug(name)).toBe(expected);
});

test.each([
  ['acme-origin', true],
  ['acme-preview', true],
  ['origin', true],
  ['preview', true],
  ['originals', false],
  ['acme-previews', false],
  ['www', true],
  ['login', true],
  ['api', true],
  ['api2', true],
  ['mail-3', true],
  ['ns1', true],
  ['mta-sts', true],
  ['tag-1', true],
  ['acme-login', false],
  ['mailchimp', false],
  ['tag-2000', true],
  ['brand-2000', false],
  ['2000', false],
])('%s could be a hostname of another site, of a host or of the operator: %s', (id, expected) => {
  expect(needsSuffix(id, 'tag-1')).toBe(expected);
});

test('suffixes make different ids from one name, which fit into a DNS label with -preview', () => {
  const ids = Array.from({ length: 20 }, () => withSuffix('a'.repeat(40)));
  expect(new Set(ids).size).toBeGreaterThan(15);
  for (const id of ids) {
    expect(id).toMatch(/^a{40}-[a-z2-9]{5}$/);
    expect(`${id}-preview`.length).toBeLessThan(63);
  }
});
