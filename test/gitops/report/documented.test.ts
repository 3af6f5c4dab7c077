import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { z } from 'zod';
import { quotasSchema } from '../../../gitops/report/quotas.ts';
import {
  certificateSchema,
  operationSchema,
  planReportSchema,
  shownSiteSchema,
  siteStatusSchema,
} from '../../../gitops/report/report.ts';

const DOCUMENT = readFileSync(new URL('../../../docs/http.md', import.meta.url), 'utf8');

/** The members of the first braces after `mark` in docs/http.md, with `?` for those that may be missing. */
function documented(mark: string): string[] {
  const [, after] = DOCUMENT.split(mark);
  const [, inner] = /\{([^{}]*)\}/.exec(after ?? '') ?? [];
  if (inner === undefined) throw new Error(`docs/http.md has no members after ${mark}`);
  return inner.split(',').map((member) => member.trim().replace(/:.*$/, ''));
}

/** The members of a schema, with `?` for optional ones. */
function answered({ shape }: z.ZodObject): string[] {
  return Object.entries(shape).map(([name, member]) => (member.type === 'optional' ? `${name}?` : name));
}

test.each<[mark: string, schema: z.ZodObject]>([
  ['- `<site>`: `', shownSiteSchema],
  ['A resource is\n', siteStatusSchema.shape.resources.element],
  ['or a certificate `', certificateSchema],
  ['| `GET /operations/:id` | `', operationSchema],
  ['- A step is `', operationSchema.shape.steps.element],
  ['- `changes` is `[', planReportSchema.shape.changes.element],
  ['| `GET /quotas` | `{ quotas: [', quotasSchema.shape.quotas.element],
])('docs/http.md has the members of the answer: %s', (mark, schema) => {
  expect(documented(mark).sort()).toEqual(answered(schema).sort());
});
