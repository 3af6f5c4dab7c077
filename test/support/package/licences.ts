import parse from 'spdx-expression-parse';
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
    if (full in BY_NAME || areAllowed(texts)) return [];
    if (LIBVIPS.test(full) && areAllowed(texts, new Set([...ALLOWED, 'LGPL-3.0-or-later']))) {
      return [];
    }
    return [`${full}@${version}: ${texts.join(', ') || 'no licence is stated'}`];
  });
}

/** Whether each licence of a package is allowed. A text that is no SPDX expression isn't. */
function areAllowed(texts: readonly string[], allowed = ALLOWED): boolean {
  return texts.length > 0 && texts.every((text) => isAllowed(expressionOf(text), allowed));
}

/** One licence of `A OR B` must be allowed, or both of `A AND B`. Exceptions and `+` (a later version) aren't allowed. */
function isAllowed(info: parse.Info | null, allowed: ReadonlySet<string>): boolean {
  if (info === null) return false;
  if (!('conjunction' in info)) return allowed.has(info.license) && !info.exception && !info.plus;
  const of = [info.left, info.right];
  return info.conjunction === 'or'
    ? of.some((one) => isAllowed(one, allowed))
    : of.every((one) => isAllowed(one, allowed));
}

function expressionOf(text: string): parse.Info | null {
  try {
    return parse(text);
  } catch {
    return null;
  }
}
