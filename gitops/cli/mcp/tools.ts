import { z } from 'zod';

/** Headers that a caller sets by other means: the token, the format of the answer, the position in a stream. */
const OWN_HEADERS: readonly string[] = ['authorization', 'accept', 'last-event-id'];
const VERBS = ['get', 'put', 'post', 'patch', 'delete'] as const;

const schema = z.record(z.string(), z.unknown());
const media = z.record(z.string(), z.object({ schema: schema.default({}) }));
const operation = z.object({
  operationId: z.string(),
  summary: z.string().default(''),
  description: z.string().default(''),
  parameters: z
    .array(
      z.object({
        in: z.enum(['path', 'query', 'header', 'cookie']),
        name: z.string(),
        required: z.boolean().default(false),
        description: z.string().optional(),
        schema: schema.default({}),
      }),
    )
    .default([]),
  requestBody: z.object({ required: z.boolean().default(false), content: media }).optional(),
  responses: z.record(z.string(), z.object({ content: media.optional() })),
});
const openApiDocument = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.unknown())),
  components: z.object({ schemas: z.record(z.string(), schema).default({}) }).default({ schemas: {} }),
});

type Schema = z.infer<typeof schema>;
type Operation = z.infer<typeof operation>;

/** An argument of a tool, and where the request has it. */
interface Argument {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header' | 'body';
  readonly required: boolean;
}

/** One operation of the API as a tool. */
export interface ApiTool {
  readonly name: string;
  readonly description: string;
  readonly method: string;
  /** With parameters in braces. */
  readonly path: string;
  readonly arguments: readonly Argument[];
  readonly inputSchema: Schema & { readonly type: 'object' };
}

/**
 * The tools of an OpenAPI document: all operations that answer JSON or, except for GET, nothing. Pages, redirects and
 * operations that only stream or take a body other than JSON are no tools.
 */
export function toolsOf(document: unknown): ApiTool[] {
  const { paths, components } = openApiDocument.parse(document);
  return Object.entries(paths).flatMap(([path, methods]) =>
    VERBS.flatMap((method) => {
      const found = methods[method] === undefined ? undefined : operation.parse(methods[method]);
      return found === undefined || !isCallable(method, found)
        ? []
        : [toolOf({ method: method.toUpperCase(), path }, found, components.schemas)];
    }),
  );
}

function isCallable(method: string, { responses, requestBody }: Operation): boolean {
  if (requestBody !== undefined && requestBody.content['application/json'] === undefined) return false;
  return Object.entries(responses).some(
    ([status, { content }]) =>
      status.startsWith('2') &&
      (content === undefined ? method !== 'get' : content['application/json'] !== undefined),
  );
}

function toolOf(
  { method, path }: Pick<ApiTool, 'method' | 'path'>,
  { operationId, summary, description, parameters, requestBody }: Operation,
  schemas: Readonly<Record<string, Schema>>,
): ApiTool {
  const listed = parameters.flatMap(({ in: place, schema: own, description: what, ...parameter }) =>
    place === 'cookie' || (place === 'header' && OWN_HEADERS.includes(parameter.name.toLowerCase()))
      ? []
      : [{ ...parameter, in: place, schema: what === undefined ? own : { description: what, ...own } }],
  );
  const body = requestBody?.content['application/json']?.schema;
  const all =
    body === undefined
      ? listed
      : [
          ...listed,
          { name: 'body', in: 'body' as const, required: requestBody?.required ?? true, schema: body },
        ];
  const properties = Object.fromEntries(all.map(({ name, schema: own }) => [name, own]));
  return {
    name: operationId,
    description: [summary, description, `(${method} ${path})`].filter((text) => text !== '').join('. '),
    method,
    path,
    arguments: all.map(({ name, in: place, required }) => ({ name, in: place, required })),
    inputSchema: {
      type: 'object',
      ...withDefinitions(properties, schemas),
      required: all.filter(({ required }) => required).map(({ name }) => name),
      additionalProperties: false,
    },
  };
}

/** The properties with the schemas that they refer to, as `$defs`: a tool's schema must be complete in itself. */
function withDefinitions(properties: Schema, schemas: Readonly<Record<string, Schema>>): Schema {
  const definitions: Record<string, unknown> = {};
  const moved = (value: unknown): unknown =>
    JSON.parse(JSON.stringify(value), (key, member: unknown) => {
      const name = key === '$ref' ? /^#\/components\/schemas\/(.+)$/.exec(String(member))?.[1] : undefined;
      if (name === undefined) return member;
      if (!(name in definitions)) {
        definitions[name] = {}; // a schema that refers to itself ends here
        definitions[name] = moved(schemas[name] ?? {});
      }
      return `#/$defs/${name}`;
    });
  const own = moved(properties);
  return { properties: own, ...(Object.keys(definitions).length > 0 ? { $defs: definitions } : {}) };
}
