import { expect, test } from 'vitest';
import { refuseOwnZone } from '../../../../management/containers/names/own-zone.ts';

const zones = {
  edgeDomain: 'edge.example.net',
  originDomain: 'origin.example.net',
  platformDomains: ['console.tagyard.example', 'sites.github.io'],
};
const pathOf = (index: number) => `domains.${index}`;

test.each([['acme.example', 'my-example.net', 'net.example', 'other.github.io'], []])(
  'names outside the zones pass: %j',
  (...names) => {
    expect(() => refuseOwnZone(zones, names, pathOf)).not.toThrow();
  },
);

test.each(['edge.example.net', 'a.edge.example.net', 'a.b.origin.example.net'])(
  '%s is refused with its path',
  (name) => {
    expect(() => refuseOwnZone(zones, ['acme.example', name], pathOf)).toThrow(
      expect.objectContaining({
        code: 'invalid_request',
        message: expect.stringMatching(/^domains\.1 is in (edge|origin)\.example\.net/),
      }),
    );
  },
);

test.each([
  'example.net',
  'my-edge.example.net',
  'shop.example.net',
  'tagyard.example',
  'console.tagyard.example',
  'login.console.tagyard.example',
  'api.tagyard.example',
  'sites.github.io',
])('%s belongs to the installation', (name) => {
  expect(() => refuseOwnZone(zones, [name], pathOf)).toThrow(
    expect.objectContaining({
      code: 'invalid_request',
      message: expect.stringContaining('domains.0 belongs to this installation'),
    }),
  );
});

test('names below a zone that is itself a public suffix are refused', () => {
  const hosted = { edgeDomain: 'github.io', originDomain: 'o.example.net', platformDomains: [] };
  expect(() => refuseOwnZone(hosted, ['acme.github.io'], pathOf)).toThrow('is in github.io');
});
