import { readFileSync } from 'node:fs';
import { Ajv, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import { z } from 'zod';

const operation = z.looseObject({
  parameters: z
    .array(z.looseObject({ in: z.string(), name: z.string(), required: z.boolean().optional() }))
    .default([]),
  requestBody: z.looseObject({ content: z.record(z.string(), z.looseObject({})) }).optional(),
  responses: z.record(
    z.string(),
    z.looseObject({ content: z.record(z.string(), z.looseObject({})).optional() }),
  ),
});
const document = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), operation)),
  components: z.looseObject({ schemas: z.record(z.string(), z.looseObject({})) }),
});

/** One exchange as seen on the wire; bodies parsed where they are JSON. */
export interface Exchange {
  readonly method: string;
  /** Template as in the document: `/zones/{zone_id}`. */
  readonly path: string;
  readonly query: Readonly<Record<string, unknown>>;
  readonly requestType: string | undefined;
  readonly requestBody: unknown;
  readonly status: number;
  readonly responseType: string | undefined;
  readonly responseBody: unknown;
}

/** Where an API differs from its document: what it has in addition, and what is different. */
export interface Overlay {
  /** Operations by path and method, as in an OpenAPI document. */
  readonly paths?: Readonly<Record<string, Readonly<Record<string, object>>>>;
  /** Members that differ in the schema of a query parameter: by path, method and name. */
  readonly query?: readonly (readonly [path: string, method: string, name: string, change: object])[];
  /** Members of a JSON request that can be absent: by path, method and name. */
  readonly optional?: readonly (readonly [path: string, method: string, name: string])[];
}

const body = z.looseObject({ required: z.array(z.string()) });

function withOverlay(text: string, { paths = {}, query = [], optional = [] }: Overlay): string {
  const api = document.parse(JSON.parse(text));
  for (const [path, methods] of Object.entries(paths)) {
    const own = z.record(z.string(), operation).parse(methods);
    api.paths[path] = { ...api.paths[path], ...own };
  }
  for (const [path, method, name, change] of query) {
    const parameter = api.paths[path]?.[method]?.parameters.find((known) => known.name === name);
    if (parameter === undefined) throw new Error(`${method} ${path} has no parameter ${name}`);
    parameter.schema = { ...z.looseObject({}).parse(parameter.schema), ...change };
  }
  for (const [path, method, name] of optional) {
    const media = api.paths[path]?.[method]?.requestBody?.content['application/json'];
    const schema = body.parse(media?.schema);
    Object.assign(media ?? {}, {
      schema: { ...schema, required: schema.required.filter((one) => one !== name) },
    });
  }
  return JSON.stringify(api);
}

/**
 * Checks exchanges against an OpenAPI 3.0 document; returns the faults, `[]` where there are none. ajv knows
 * `nullable`, and `oneOf` needs no discriminator here, since each record type names itself in an enum.
 */
export function openapiValidator(file: URL, overlay: Overlay = {}): (exchange: Exchange) => string[] {
  const text = withOverlay(readFileSync(file, 'utf8'), overlay);
  // An address list satisfies both branches of this oneOf: the second only has one more, optional member.
  const overlapping = '"oneOf":[{"$ref":"#/components/schemas/addressing_ips"}';
  const api = document.parse(JSON.parse(text.replace(overlapping, overlapping.replace('oneOf', 'anyOf'))));
  // A route that bypasses the workers has no script (developers.cloudflare.com, Workers routes).
  const route = api.components.schemas.workers_routes;
  if (route !== undefined) route.required = ['id', 'pattern'];
  const ajv = new Ajv({ strict: false, allErrors: false, coerceTypes: false, validateFormats: true });
  addFormats.default(ajv);
  ajv.addSchema({ ...api }, 'answers');
  ajv.addSchema({ ...withoutAnswerOnlyMembers(text) }, 'requests');

  // Query parameters arrive as text.
  const query = new Ajv({ strict: false, coerceTypes: true });
  addFormats.default(query);
  query.addSchema({ ...api }, 'answers');

  const compiled = new Map<string, ValidateFunction>();
  const validator = (engine: Ajv, ref: string): ValidateFunction => {
    const key = `${engine === query} ${ref}`;
    const known = compiled.get(key) ?? engine.compile({ $ref: ref });
    compiled.set(key, known);
    return known;
  };
  const pointer = (...parts: string[]) =>
    parts.map((part) => `/${encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))}`).join('');

  return (exchange) => {
    const method = exchange.method.toLowerCase();
    const where = `${exchange.method} ${exchange.path} → ${exchange.status}`;
    const found = api.paths[exchange.path]?.[method];
    if (found === undefined) return [`${where}: not in the document`];
    const faults: string[] = [];
    const check = (engine: Ajv, ref: string, value: unknown, what: string) => {
      const validate = validator(engine, ref);
      if (!validate(value)) faults.push(`${where}: ${what}: ${engine.errorsText(validate.errors)}`);
    };

    for (const [name, value] of Object.entries(exchange.query)) {
      const index = found.parameters.findIndex(
        (parameter) => parameter.in === 'query' && parameter.name === name,
      );
      if (index === -1) faults.push(`${where}: query ${name} is not in the document`);
      else {
        const ref = `answers#${pointer('paths', exchange.path, method, 'parameters', String(index), 'schema')}`;
        check(query, ref, value, `query ${name}`);
      }
    }

    const requestType = exchange.requestType?.split(';')[0];
    if (found.requestBody === undefined) {
      if (exchange.requestBody !== undefined)
        faults.push(`${where}: has a body that the document doesn't know`);
    } else if (requestType !== undefined && found.requestBody.content[requestType] === undefined) {
      faults.push(`${where}: request type ${requestType} is not in the document`);
    } else if (requestType === 'application/json' && exchange.status < 400) {
      const media = found.requestBody.content[requestType];
      const ref = `requests#${pointer('paths', exchange.path, method, 'requestBody', 'content', requestType, 'schema')}`;
      if (media?.schema !== undefined) check(ajv, ref, exchange.requestBody, 'request');
    }

    const status = exchange.status >= 400 && exchange.status < 500 ? '4XX' : String(exchange.status);
    const responseType = exchange.responseType?.split(';')[0] ?? '';
    const media = found.responses[status]?.content?.[responseType];
    if (media === undefined) {
      faults.push(`${where}: ${status} ${responseType} is not in the document`);
    } else if (responseType === 'application/json' && media.schema !== undefined) {
      const ref = `answers#${pointer('paths', exchange.path, method, 'responses', status, 'content', responseType, 'schema')}`;
      check(ajv, ref, exchange.responseBody, 'answer');
    }
    return faults;
  };
}

/**
 * The document, adapted to requests. The schema requires the members that only the server sets (`id`, `proxiable`,
 * dates) in both directions, but a record in a request lacks them. A PATCH requires no member.
 */
function withoutAnswerOnlyMembers(text: string) {
  const api = document.parse(JSON.parse(text));
  delete api.components.schemas['dns-records_dns-record']?.required;
  const patch = api.paths['/zones/{zone_id}/dns_records/{dns_record_id}']?.patch?.requestBody?.content;
  if (patch !== undefined) {
    const { required: _id, ...partial } = api.components.schemas.overlay_dns_record_patch ?? {};
    patch['application/json'] = { schema: partial };
  }
  return api;
}
