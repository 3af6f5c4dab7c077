import fastifySwagger from '@fastify/swagger';
import fastifySwaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { ERRORS, type ErrorCode } from './errors.ts';

const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.enum(Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]]), // Object.keys forgets the key type
    detail: z.string().optional(),
    requestId: z.string(),
    errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
    container: z.uuid().optional(),
  })
  .meta({ id: 'Problem', description: 'RFC 9457' });

/** The pages' own files and this API, and nothing from afar; they set styles of their own at run time. */
const PAGES_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

interface ProblemResponse {
  readonly description: string;
  readonly content: { readonly 'application/problem+json': { readonly schema: typeof problemSchema } };
}

/** The problem answers of an endpoint by status, each with its codes; those that every endpoint has are added. */
export function problems(...codes: ErrorCode[]): Record<number, ProblemResponse> {
  const all: ErrorCode[] = [
    ...codes,
    'missing_token',
    'invalid_token',
    'expired_token',
    'rate_limited',
    'auth_unavailable',
    'internal',
  ];
  const byStatus = Map.groupBy(all, (code) => ERRORS[code][0]);
  return Object.fromEntries(
    [...byStatus].map(([status, these]) => [
      status,
      {
        description: these.map((code) => `\`${code}\`: ${ERRORS[code][1]}`).join('; '),
        content: { 'application/problem+json': { schema: problemSchema } },
      },
    ]),
  );
}

/** The document, made from the schemas that requests are checked with, and its pages without anything from afar. */
export async function registerOpenApi(app: FastifyInstance): Promise<void> {
  await app.register(fastifySwagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Tagyard management API',
        version: '0.1.0',
        description: 'Server-side tag containers as a service.',
      },
      tags: [{ name: 'containers' }, { name: 'clients' }],
      components: {
        securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
      },
      security: [{ bearer: [] }],
    },
    transform: jsonSchemaTransform,
    transformObject: jsonSchemaTransformObject,
  });
  await app.register(fastifySwaggerUi, { routePrefix: '/docs', staticCSP: PAGES_POLICY });
  app.get('/openapi.json', { schema: { hide: true } }, () => app.swagger());
}
