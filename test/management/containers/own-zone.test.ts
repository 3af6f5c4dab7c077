import { expect, test } from 'vitest';
import { refuseOwnZone } from '../../../management/containers/own-zone.ts';

const zones = { edgeDomain: 'edge.example.net', originDomain: 'origin.example.net' };
const pathOf = (index: number) => `domains.${index}`;

test.each([['acme.example', 'example.net', 'my-edge.example.net'], []])(
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
