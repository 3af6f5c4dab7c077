import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { fieldErrors } from '../../base/http/problem.ts';
import { type Manifest, manifestSchema, siteId } from '../../sites/manifest/schema.ts';
import { ProvisionerProblem } from './errors.ts';

export const siteIdParams = z.object({ site: siteId });

/** A body that the request may omit: then it is `{}`. */
export function optionalBody<Schema extends z.ZodType>(schema: Schema) {
  return z.preprocess((body) => body ?? {}, schema);
}

/** A manifest of this host. Throws `invalid_manifest` or `wrong_host`. */
export function manifestOf(body: unknown, host: string): Manifest {
  const result = manifestSchema.safeParse(body);
  if (!result.success) {
    throw new ProvisionerProblem('invalid_manifest', { errors: fieldErrors(result.error.issues) });
  }
  if (result.data.host !== host) {
    throw new ProvisionerProblem('wrong_host', {
      detail: `the manifest names ${result.data.host}; this is ${host}`,
    });
  }
  return result.data;
}

export function requestHeader(request: FastifyRequest, name: string): string | null {
  const value = request.headers[name];
  return typeof value === 'string' && value !== '' ? decoded(value).slice(0, 200) : null;
}

/** Node reads headers as Latin-1. Bytes that are valid UTF-8 are decoded as such. */
function decoded(value: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(value, 'latin1'));
  } catch {
    return value;
  }
}
