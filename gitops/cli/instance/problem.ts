import { z } from 'zod';
import { ServiceProblem } from '../output/cli-error.ts';
import type { Service } from './call.ts';

const problem = z.object({
  code: z.string().default(''),
  title: z.string().default(''),
  detail: z.string().optional(),
  errors: z.array(z.object({ path: z.string(), message: z.string() })).default([]),
  moreErrors: z.number().default(0),
});

/** Makes an error from an answer other than 2xx. Its message lists fields at fault, and how many more there are. */
export function problemOf({ name }: Service, status: number, body: unknown): ServiceProblem {
  const { code, title, detail, errors, moreErrors } = problem.safeParse(body).data ?? problem.parse({});
  const message = detail || title || `${name} answered with status ${status}`;
  const fields = errors.map(({ path, message: what }) => `\n  ${path === '' ? '' : `${path}: `}${what}`);
  const more = moreErrors === 0 ? '' : `\n  and ${moreErrors} more`;
  return new ServiceProblem(`${message}${fields.join('')}${more}`, code);
}
