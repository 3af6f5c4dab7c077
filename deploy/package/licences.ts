import { z } from 'zod';

/** Licences (SPDX) of what may be shipped: they ask for a notice at most. */
const ALLOWED: ReadonlySet<string> = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'CC0-1.0',
  'ISC',
  'MIT',
  'MIT-0',
  'PSF-2.0',
  'Python-2.0',
  'Unlicense',
]);

/**
 * Packages that may be shipped although npm doesn't find an allowed licence: the licence of each, and why npm doesn't.
 */
const BY_NAME: Readonly<Record<string, string>> = {
  buildcheck: 'MIT, in the old form `licenses`',
  'cpu-features': 'MIT, in the old form `licenses`',
  ssh2: 'MIT, in the old form `licenses`',
};

/** Binaries of libvips, under the LGPL: Miniflare's sharp loads them as shared libraries, unchanged. */
const LIBVIPS = /^@img\/sharp-/;

const stated = z.union([
  z.object({ expression: z.string() }),
  z.object({ license: z.union([z.object({ id: z.string() }), z.object({ name: z.string() })]) }),
]);
const bill = z.object({
  components: z
    .array(
      z.object({
        name: z.string(),
        group: z.string().optional(),
        version: z.string(),
        licenses: z.array(stated).default([]),
      }),
    )
    .min(1),
});

/** `name@version: licence` of each component whose licence isn't allowed. `text`: a bill of materials (CycloneDX). */
export function refusedLicences(text: string): string[] {
  return bill.parse(JSON.parse(text)).components.flatMap(({ name, group, version, licenses }) => {
    const full = group === undefined || name.startsWith('@') ? name : `${group}/${name}`;
    const texts = licenses.map((one) =>
      'expression' in one ? one.expression : 'id' in one.license ? one.license.id : one.license.name,
    );
    if (full in BY_NAME || isAllowed(texts.join(' AND '))) return [];
    if (LIBVIPS.test(full) && isAllowed(texts.join(' AND '), new Set([...ALLOWED, 'LGPL-3.0-or-later']))) {
      return [];
    }
    return [`${full}@${version}: ${texts.join(', ') || 'no licence is stated'}`];
  });
}

/**
 * True if one licence of `A OR B` is allowed, or both of `A AND B`. Parentheses around the whole expression are ignored; an
 * expression with other parentheses is refused.
 */
function isAllowed(expression: string, allowed = ALLOWED): boolean {
  const whole = expression.replace(/^\((.*)\)$/, '$1');
  return whole.split(' OR ').some((choice) => choice.split(' AND ').every((one) => allowed.has(one.trim())));
}
