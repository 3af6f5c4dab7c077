import { expect, test } from 'vitest';
import { unneededCertificates } from '../../../../gitops/kubernetes/applier/state/unneeded-certificates.ts';

const HOST = 'tags.shop.example';
const one = (id: string, notAfter: number, ...names: string[]) => ({ id, notAfter, names });
const named = (host: string, stored: string | null) => ({ host, stored });

test.each([
  ['has been replaced', [one('old', 1, HOST), one('new', 2, HOST)], [named(HOST, 'new')], ['old']],
  [
    'has been replaced while another name has none',
    [one('old', 1, HOST), one('new', 2, HOST)],
    [named(HOST, 'new'), named('none.example', null)],
    ['old'],
  ],
  [
    'has been replaced by one that expires sooner',
    [one('old', 2, HOST), one('new', 1, HOST)],
    [named(HOST, 'new')],
    ['old'],
  ],
  ['isn’t delivered yet', [one('old', 1, HOST)], [named(HOST, 'new')], []],
  ['is lost from the store', [one('only', 1, HOST)], [named(HOST, null)], []],
  [
    'is lost from the store, and had been replaced before',
    [one('old', 1, HOST), one('last', 2, HOST)],
    [named(HOST, null)],
    ['old'],
  ],
  ['has no desired name', [one('left', 1, 'left.example')], [named(HOST, null)], ['left']],
  [
    'is a wildcard that a name without a certificate uses',
    [one('old', 1, '*.shop.example'), one('new', 2, '*.shop.example')],
    [named('other.shop.example', 'new'), named(HOST, null)],
    ['old'],
  ],
  [
    'has several names, of which one has no other certificate',
    [one('old', 1, HOST, 'other.example'), one('new', 2, HOST)],
    [named(HOST, 'new'), named('other.example', null)],
    [],
  ],
] as const)('where a certificate %s, the unneeded ones are $3', (_, delivered, names, unneeded) => {
  const found = unneededCertificates(delivered, { names, refused: new Set() });
  expect(found.map(({ id }) => id)).toEqual(unneeded);
});

test.each([
  ['the stored one', ['new'], ['older']],
  ['the stored one and the latest of the others', ['new', 'old'], ['old']],
  ['all', ['new', 'old', 'older'], ['old', 'older']],
] as const)('if gateways refuse %s, the stored one and one in use (if any) stay', (_, refused, unneeded) => {
  const delivered = [one('new', 3, HOST), one('old', 2, HOST), one('older', 1, HOST)];
  const found = unneededCertificates(delivered, { names: [named(HOST, 'new')], refused: new Set(refused) });
  expect(found.map(({ id }) => id)).toEqual(unneeded);
});
