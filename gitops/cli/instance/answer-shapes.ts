import { z } from 'zod';
import { ANSWER_SCHEMAS } from './answer-schemas.ts';

/** Each schema of `ANSWER_SCHEMAS`, as JSON Schema. */
export function answerShapes(): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(ANSWER_SCHEMAS).map(([name, schema]) => [name, z.toJSONSchema(schema, { io: 'input' })]),
  );
}
