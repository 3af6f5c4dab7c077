import type { Answers } from './answer-schemas.ts';
import { convert, Mismatch } from './shape.ts';
import shapes from './shapes.json' with { type: 'json' };

/**
 * Reads an answer as its schema does: without unknown members, and with defaults. It does so by the generated shape,
 * because loading zod takes longer than all other work of a verb such as `status`. Throws the schema's `ZodError`.
 */
export async function readAnswer<Name extends keyof Answers>(
  name: Name,
  value: unknown,
): Promise<Answers[Name]> {
  try {
    return convert(shapes[name], value) as Answers[Name]; // a test compares the shapes with the schemas
  } catch (error) {
    if (!(error instanceof Mismatch)) throw error;
    const { ANSWER_SCHEMAS } = await import('./answer-schemas.ts');
    return ANSWER_SCHEMAS[name].parse(value) as Answers[Name]; // TypeScript doesn't infer the type from `name`
  }
}
