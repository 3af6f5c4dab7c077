import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { formatManifest, parseManifest } from '../../../gitops/manifest/load.ts';
import { describeWith, missing, REFERENCE } from '../../support/components.ts';
import { manifestInput } from '../../support/manifest.ts';

const schema = z.object({ cases: z.array(z.object({ id: z.string(), name: z.string(), yaml: z.string() })) });

/** Documents that a parser must refuse (the file names its source and licence). */
const cases =
  missing('reference') === null
    ? schema.parse(
        JSON.parse(readFileSync(new URL('vectors/yaml_test_suite_invalid.json', REFERENCE), 'utf8')),
      ).cases
    : [];

describeWith('reference', 'the invalid documents of the YAML test suite', () => {
  const valid = formatManifest(manifestInput());
  // How they come into a repository: as the whole file, at the end of a good one, in front of it, inside a value.
  const ways = [
    ['alone', (yaml: string) => yaml],
    ['at the end', (yaml: string) => valid + yaml],
    ['in front', (yaml: string) => `${yaml}\n${valid}`],
    ['as a value', (yaml: string) => valid.replace('Acme Shop', yaml)],
  ] as const;

  test('are there', () => expect(cases.length).toBeGreaterThan(90));

  test.each(cases)('$id, $name: is refused with a line, wherever it stands', ({ yaml }) => {
    for (const [way, place] of ways) {
      const text = place(yaml);
      const parsed = parseManifest(text, 'acme-shop.yaml');
      // Beside or inside a good manifest some of them are harmless text.
      if (parsed.ok && way !== 'alone') continue;
      if (parsed.ok) throw new Error('is taken for a manifest');
      expect(parsed.problems.length, way).toBeGreaterThan(0);
      for (const { message, line } of parsed.problems) {
        expect(message, way).not.toBe('');
        expect(line, way).toBeGreaterThan(0);
        expect(line, way).toBeLessThanOrEqual(text.split('\n').length);
      }
    }
  });
});
