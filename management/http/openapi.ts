import fastifySwagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { RELEASE } from '../../base/release.ts';
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

/** The groups of the endpoints, in the order in which a reader meets them. */
const TAGS = [
  {
    name: 'containers',
    description: 'Create, change, verify and remove the containers of sites, with their domains.',
  },
  {
    name: 'domains',
    description: 'What DNS answers for a site’s domains, and the proof that they are a client’s.',
  },
  { name: 'clients', description: 'Customers, their members and invitations.' },
  { name: 'organisations', description: 'Groups of clients, such as those of an agency.' },
  { name: 'tokens', description: 'Service tokens, by which programs call this API with one role.' },
  { name: 'plugins', description: 'What the edge can do for a site, with the schema of the options.' },
  { name: 'events', description: 'What happens, as it happens: streams of server-sent events.' },
  { name: 'traffic', description: 'Sums of requests and events over time, and the usage of each day.' },
  { name: 'requests', description: 'Single requests to the edge: searched, exported, or as they arrive.' },
  { name: 'operations', description: 'Work that continues after the answer, with its steps.' },
  { name: 'webhooks', description: 'Events sent to your own addresses, signed, with their deliveries.' },
  { name: 'audit', description: 'Who changed what, and when.' },
  { name: 'instance', description: 'Hosts, drift, plans and commits of the whole installation.' },
  { name: 'session', description: 'The login of a person in a browser.' },
];

const DESCRIPTION = `Server-side tag containers as a service. Each answer has an \`x-request-id\`; errors are problem
documents (RFC 9457) with a \`code\`. Log in by a bearer token or, in a browser, by a session of the console. An archived
client or organisation is open to reads and deletions only: other changes are 409 \`client_archived\` or
\`organisation_archived\`.`;

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
    'database_unavailable',
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

type Schemas = Readonly<Record<string, unknown>>;

/** The names of the schemas that the text refers to, and those that these refer to. */
function referredTo(schemas: Schemas, text: string, found = new Set<string>()): ReadonlySet<string> {
  for (const [, name = ''] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
    if (found.has(name)) continue;
    found.add(name);
    referredTo(schemas, JSON.stringify(schemas[name]), found);
  }
  return found;
}

/** Without the forms for requests that each named schema gets, unless a request has one. */
const transformObject: typeof jsonSchemaTransformObject = (given) => {
  const document = jsonSchemaTransformObject(given);
  const schemas = 'components' in document ? (document.components?.schemas ?? {}) : {};
  const used = referredTo(schemas, JSON.stringify(document.paths));
  for (const name of Object.keys(schemas)) {
    if (!used.has(name)) Reflect.deleteProperty(schemas, name);
  }
  return document;
};

/** Serves the OpenAPI document, made from the schemas that validate requests. */
export async function registerOpenApi(app: FastifyInstance): Promise<void> {
  await app.register(fastifySwagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Tagyard API',
        version: RELEASE,
        description: DESCRIPTION,
      },
      tags: TAGS,
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
          session: { type: 'apiKey', in: 'cookie', name: '__Host-tagyard-session' },
        },
      },
      security: [{ bearer: [] }, { session: [] }],
    },
    transform: jsonSchemaTransform,
    transformObject,
  });
  app.get('/openapi.json', { schema: { hide: true } }, () => app.swagger());
}
