import { writeFileSync } from 'node:fs';
import { execa } from 'execa';
import { z } from 'zod';
import { apiDocument, keyedOperations, stampOf } from './api-document.ts';

/** `npm run generate:api`: writes the types of the API's clients from its OpenAPI document. */
const GENERATED = new URL('../base/client/generated/', import.meta.url);

/** The part of the document that `withNamedProblem` changes. */
const described = z.looseObject({
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.looseObject({
        responses: z.record(
          z.string(),
          z.looseObject({ description: z.string(), content: z.record(z.string(), z.unknown()).optional() }),
        ),
      }),
    ),
  ),
  components: z.looseObject({}),
});

const document = await apiDocument();
const { stdout } = await execa('openapi-typescript', { input: JSON.stringify(withNamedProblem(document)) });
const types = `${stdout.trim()}\n`;
writeFileSync(new URL('management-api.d.ts', GENERATED), `${stampOf(document, types)}${types}`);
writeFileSync(new URL('keyed-operations.ts', GENERATED), keyedOperations(document));

/** The document whose problem answers, each with its own description, refer to one, so that its type is written once. */
function withNamedProblem(document: object): object {
  const { paths, components, ...rest } = described.parse(document);
  let problem: unknown;
  for (const operation of Object.values(paths).flatMap((path) => Object.values(path))) {
    for (const [status, { description, ...answer }] of Object.entries(operation.responses)) {
      if (!('application/problem+json' in (answer.content ?? {}))) continue;
      problem = { description: 'RFC 9457', ...answer };
      operation.responses[status] = { $ref: '#/components/responses/Problem', description };
    }
  }
  return { ...rest, paths, components: { ...components, responses: { Problem: problem } } };
}
