import { writeFileSync } from 'node:fs';
import { answerShapes } from '../instance/answer-shapes.ts';

/** `npm run generate:shapes`: generates the shapes of the answers that `instance/answers.ts` reads, from their schemas. */
const file = new URL('../instance/shapes.json', import.meta.url);
writeFileSync(file, `${JSON.stringify(answerShapes(), null, 2)}\n`);
