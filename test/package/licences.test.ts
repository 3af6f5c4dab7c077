import { describe, expect, test } from 'vitest';
import { billOfMaterials } from '../../deploy/package/sbom.ts';
import { refusedLicences } from '../support/package/licences.ts';

const bill = (...components: { name: string; licenses?: readonly object[] }[]) =>
  JSON.stringify({ components: components.map((one) => ({ version: '1.0.0', ...one })) });

describe('the licences of all that is shipped', () => {
  test('are allowed ones', async () => {
    const text = await billOfMaterials();
    // The bill includes the optional parts, for every system.
    for (const name of ['fastify', 'zod', 'miniflare', 'workerd', '@electric-sql/pglite'])
      expect(text).toContain(`"name": "${name}"`);
    expect(text).not.toContain('"name": "vitest"');
    expect(refusedLicences(text)).toEqual([]);
  });

  test.each([
    ['an allowed one', [{ license: { id: 'MIT' } }], []],
    ['a choice with an allowed one', [{ expression: '(BSD-3-Clause OR GPL-2.0)' }], []],
    ['two that both apply, one refused', [{ expression: 'MIT AND GPL-2.0' }], ['x@1.0.0: MIT AND GPL-2.0']],
    [
      'two choices that both apply, each with an allowed licence',
      [{ expression: '(MIT OR GPL-2.0) AND (ISC OR GPL-3.0-only)' }],
      [],
    ],
    [
      'two such choices, one without an allowed licence',
      [{ expression: '(MIT OR ISC) AND (GPL-2.0 OR GPL-3.0-only)' }],
      ['x@1.0.0: (MIT OR ISC) AND (GPL-2.0 OR GPL-3.0-only)'],
    ],
    [
      'an allowed expression and a refused licence beside it',
      [{ expression: 'MIT OR ISC' }, { license: { id: 'GPL-2.0' } }],
      ['x@1.0.0: MIT OR ISC, GPL-2.0'],
    ],
    [
      'an exception',
      [{ expression: 'GPL-2.0 WITH Classpath-exception-2.0' }],
      ['x@1.0.0: GPL-2.0 WITH Classpath-exception-2.0'],
    ],
    ['a later version', [{ expression: 'Apache-2.0+' }], ['x@1.0.0: Apache-2.0+']],
    ['one that is not allowed', [{ license: { id: 'GPL-3.0-only' } }], ['x@1.0.0: GPL-3.0-only']],
    ['none', [], ['x@1.0.0: no licence is stated']],
    ['a text', [{ license: { name: 'see LICENCE' } }], ['x@1.0.0: see LICENCE']],
  ])('if a package has %s: refused $2', (_case, licenses, refused) => {
    expect(refusedLicences(bill({ name: 'x', licenses }))).toEqual(refused);
  });
});
