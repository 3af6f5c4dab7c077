import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { formatManifest, parseManifest } from '../../../sites/manifest/load.ts';
import { describeWith, missing, REFERENCE } from '../../support/components.ts';
import { manifestInput } from '../../support/manifest.ts';

const schema = z.object({ cases: z.array(z.object({ id: z.string(), name: z.string(), yaml: z.string() })) });

/** Documents that a parser must refuse. The file names their source and licence. */
const cases =
  missing('reference') === null
    ? schema.parse(
        JSON.parse(readFileSync(new URL('vectors/yaml_test_suite_invalid.json', REFERENCE), 'utf8')),
      ).cases
    : [];

describeWith('reference', 'the invalid documents of the YAML test suite', () => {
  const valid = formatManifest(manifestInput());
  // Each text is tried as the whole file, after a valid one, before it, and inside a value.
  const ways = [
    ['alone', (yaml: string) => yaml],
    ['at the end', (yaml: string) => valid + yaml],
    ['in front', (yaml: string) => `${yaml}\n${valid}`],
    ['as a value', (yaml: string) => valid.replace('Acme Shop', yaml)],
  ] as const;

  test('exist', () => expect(cases.length).toBeGreaterThan(90));

  test.each(cases)('$id, $name: is refused with a line number, alone and where it is invalid', ({ yaml }) => {
    for (const [way, place] of ways) {
      const text = place(yaml);
      const parsed = parseManifest(text, 'acme-shop.yaml');
      // Next to or inside a valid manifest some of them are valid text.
      if (parsed.ok && way !== 'alone') continue;
      if (parsed.ok) throw new Error('the document was accepted');
      expect(parsed.problems.length, way).toBeGreaterThan(0);
      for (const { message, line } of parsed.problems) {
        expect(message, way).not.toBe('');
        expect(line, way).toBeGreaterThan(0);
        expect(line, way).toBeLessThanOrEqual(text.split('\n').length);
      }
    }
  });
});
