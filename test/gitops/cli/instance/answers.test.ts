import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ZodError } from 'zod';
import { ANSWER_SCHEMAS, type Answers } from '../../../../gitops/cli/instance/answer-schemas.ts';
import { answerShapes } from '../../../../gitops/cli/instance/answer-shapes.ts';
import { readAnswer } from '../../../../gitops/cli/instance/answers.ts';
import { convert, Mismatch, type Shape } from '../../../../gitops/cli/instance/shape.ts';

const SHAPES = answerShapes() as Record<keyof Answers, Shape>; // `convert` knows a part of JSON Schema
const NAMES = Object.keys(ANSWER_SCHEMAS) as (keyof Answers)[]; // Object.keys forgets the key type

test('the generated shapes are those of the schemas: npm run generate:shapes', () => {
  const url = new URL('../../../../gitops/cli/instance/shapes.json', import.meta.url);
  expect(JSON.parse(readFileSync(url, 'utf8'))).toEqual(SHAPES);
});

/** A value that has the shape, or almost: members are missing, unknown, or of another type. */
function nearly(shape: Shape): fc.Arbitrary<unknown> {
  const other = fc.constantFrom<unknown>(null, 0, '', 'x', true, [], {}, [{}]);
  return fc.oneof({ arbitrary: other, weight: 1 }, { arbitrary: having(shape), weight: 40 });
}

function having({ anyOf, type, properties = {}, ...shape }: Shape): fc.Arbitrary<unknown> {
  if (anyOf !== undefined) return fc.oneof(...anyOf.map(nearly));
  if (shape.enum !== undefined) return fc.constantFrom(...shape.enum);
  if ('const' in shape) return fc.constant(shape.const);
  if (shape.pattern !== undefined) return fc.constantFrom('2026-01-31T10:00:00Z', '2026-02-31T10:00:00Z', '');
  const { items = {}, required = [], additionalProperties: member } = shape;
  const record = () => {
    const members = Object.entries(properties).map(([key, one]) => [key, nearly(one)] as const);
    const model: Record<string, fc.Arbitrary<unknown>> = {
      ...Object.fromEntries(members),
      more: fc.constant(1),
    };
    const whole = fc.record(model, { requiredKeys: [...required] });
    return fc.oneof({ arbitrary: whole, weight: 9 }, fc.record(model, { requiredKeys: [] }));
  };
  const kinds: Record<string, () => fc.Arbitrary<unknown>> = {
    string: () => fc.string({ maxLength: 5 }),
    number: () => fc.double({ noNaN: true, noDefaultInfinity: true }),
    boolean: () => fc.boolean(),
    null: () => fc.constant(null),
    array: () => fc.array(nearly(items), { maxLength: 2 }),
    object: () =>
      typeof member === 'object' ? fc.dictionary(fc.constantFrom('a', 'b'), nearly(member)) : record(),
  };
  return fc.oneof(...[type ?? 'null'].flat().map((kind) => (kinds[kind] ?? fc.anything)()));
}

test.each(NAMES)('the shape of %s accepts and reads the same values as its schema', async (name) => {
  let accepted = 0;
  await fc.assert(
    fc.asyncProperty(having(SHAPES[name]), async (value) => {
      const parsed = ANSWER_SCHEMAS[name].safeParse(value);
      if (parsed.success) {
        accepted += 1;
        expect(convert(SHAPES[name], value)).toEqual(parsed.data);
        expect(await readAnswer(name, value)).toEqual(parsed.data);
      } else {
        expect(() => convert(SHAPES[name], value)).toThrow(Mismatch);
        await expect(readAnswer(name, value)).rejects.toThrow(ZodError);
      }
    }),
    { numRuns: 300, seed: 1 },
  );
  expect(accepted).toBeGreaterThan(3);
});

const LATER = [['an unknown member', { problem: null, revision: null, sites: [], later: 1 }]] as const;

test.each(LATER)('%s is dropped, and a missing member has its default', async (_what, value) => {
  expect(await readAnswer('sites', value)).toEqual({ problem: null, revision: null, sites: [], quotas: [] });
});
