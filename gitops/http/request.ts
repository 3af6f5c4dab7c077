import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { type Manifest, manifestSchema } from '../manifest/schema.ts';
import { fieldErrors, ProblemError } from './errors.ts';

/** A body or query by its schema; throws `malformed_request` with the paths at fault. */
export function parse<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new ProblemError('malformed_request', undefined, { errors: fieldErrors(result.error.issues) });
}

/** A manifest of this host; throws `invalid_manifest` or `wrong_host`. */
export function manifestOf(body: unknown, host: string): Manifest {
  const result = manifestSchema.safeParse(body);
  if (!result.success) {
    throw new ProblemError('invalid_manifest', undefined, { errors: fieldErrors(result.error.issues) });
  }
  if (result.data.host !== host) {
    throw new ProblemError('wrong_host', `the manifest names ${result.data.host}; this is ${host}`);
  }
  return result.data;
}

export function requestHeader(request: FastifyRequest, name: string): string | null {
  const value = request.headers[name];
  return typeof value === 'string' && value !== '' ? value.slice(0, 200) : null;
}

export function pickQuery(query: unknown, names: readonly string[]): Record<string, unknown> {
  const all = typeof query === 'object' && query !== null ? Object.entries(query) : [];
  return Object.fromEntries(all.filter(([name]) => names.includes(name)));
}
