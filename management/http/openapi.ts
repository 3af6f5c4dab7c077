import fastifySwagger from '@fastify/swagger';
import fastifySwaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { MANAGEMENT_ERRORS, type ManagementErrorCode } from './errors.ts';

const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.enum(Object.keys(MANAGEMENT_ERRORS) as [ManagementErrorCode, ...ManagementErrorCode[]]), // Object.keys drops the key type
    detail: z.string().optional(),
    requestId: z.string(),
    errors: z
      .array(z.object({ path: z.string(), message: z.string() }))
      .max(20)
      .optional(),
    /** The number of invalid fields that `errors` omits. */
    moreErrors: z.number().int().optional(),
    container: z.uuid().optional(),
  })
  .meta({ id: 'Problem', description: 'RFC 9457' });

/** The pages load their own files and this API, nothing from other hosts. They set styles at run time. */
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

/** The problem answers of an endpoint by status, each with its codes, and those that every endpoint has. */
export function problems(...codes: ManagementErrorCode[]): Record<number, ProblemResponse> {
  const all: ManagementErrorCode[] = [
    ...codes,
    'missing_token',
    'invalid_token',
    'expired_token',
    'expired_session',
    'cross_site',
    'rate_limited',
    'auth_unavailable',
    'internal',
  ];
  const byStatus = Map.groupBy(all, (code) => MANAGEMENT_ERRORS[code][0]);
  return Object.fromEntries(
    [...byStatus].map(([status, these]) => [
      status,
      {
        description: these.map((code) => `\`${code}\`: ${MANAGEMENT_ERRORS[code][1]}`).join('; '),
        content: { 'application/problem+json': { schema: problemSchema } },
      },
    ]),
  );
}

/** Serves the OpenAPI document, made from the schemas that validate requests, and its pages under /docs. */
export async function registerOpenApi(app: FastifyInstance): Promise<void> {
  await app.register(fastifySwagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Tagyard management API',
        version: '0.1.0',
        description: 'Server-side tag containers as a service.',
      },
      tags: [
        { name: 'containers' },
        { name: 'clients' },
        { name: 'organisations' },
        { name: 'tokens' },
        { name: 'plugins' },
        { name: 'events' },
        { name: 'operations' },
        { name: 'audit' },
        { name: 'webhooks' },
        { name: 'instance' },
        { name: 'session' },
      ],
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
          session: { type: 'apiKey', in: 'cookie', name: '__Host-tagyard-session' },
        },
      },
      security: [{ bearer: [] }, { session: [] }],
    },
    transform: jsonSchemaTransform,
    transformObject: jsonSchemaTransformObject,
  });
  await app.register(fastifySwaggerUi, { routePrefix: '/docs', staticCSP: PAGES_POLICY });
  app.get('/openapi.json', { schema: { hide: true } }, () => app.swagger());
}
