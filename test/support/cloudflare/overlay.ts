import type { Overlay } from '../openapi.ts';

/**
 * What the API has, but not the OpenAPI document by which the traffic is checked. Sources: the types of the official
 * SDK (npm cloudflare 7.3.0, resources/workers/scripts, resources/workers/domains, resources/dns/usage and
 * resources/google-tag-gateway); for the last path, the calls of wrangler 4; for the query parameters and the optional
 * members, what wrangler 4, certbot and the SDK send.
 */
const text = { type: 'string' };
const yes = { type: 'boolean' };
const time = { type: 'string', format: 'date-time' };
const texts = { type: 'array', items: text };
const map = { type: 'object', additionalProperties: text };

function object(properties: object, required: readonly string[] = []) {
  return { type: 'object', properties, ...(required.length === 0 ? {} : { required: [...required] }) };
}
const list = (items: object) => ({ type: 'array', items });
const nullable = (schema: object) => ({ ...schema, nullable: true });

/** The further members of a binding depend on its type. */
const binding = object({ name: text, type: text }, ['name', 'type']);
const consumer = object({ service: text, environment: text, namespace: text }, ['service']);
const observability = object(
  {
    enabled: yes,
    head_sampling_rate: nullable({ type: 'number' }),
    logs: nullable(object({ enabled: yes, invocation_logs: yes }, ['enabled', 'invocation_logs'])),
    traces: nullable(object({ enabled: yes })),
  },
  ['enabled'],
);
const scriptLevel = {
  logpush: yes,
  observability: nullable(observability),
  tags: nullable(texts),
  tail_consumers: nullable(list(consumer)),
};
const versionLevel = {
  annotations: map,
  bindings: list(binding),
  compatibility_date: text,
  compatibility_flags: texts,
  placement: object({}),
  usage_model: { type: 'string', enum: ['standard', 'bundled', 'unbound'] },
};
const script = object({
  ...scriptLevel,
  ...versionLevel,
  id: text,
  tag: text,
  etag: text,
  handlers: texts,
  has_assets: yes,
  has_modules: yes,
  created_on: time,
  modified_on: time,
  last_deployed_from: text,
});
const uploaded = { allOf: [script, object({ startup_time_ms: { type: 'number' } }, ['startup_time_ms'])] };
const version = object({
  id: text,
  number: { type: 'number' },
  metadata: object({
    author_email: text,
    author_id: text,
    created_on: text,
    hasPreview: yes,
    modified_on: text,
    source: text,
  }),
});
const wholeVersion = {
  allOf: [
    version,
    object(
      { resources: object({ bindings: list(binding), script: object({}), script_runtime: object({}) }) },
      ['resources'],
    ),
  ],
};
const portion = object({ percentage: { type: 'number' }, version_id: text }, ['percentage', 'version_id']);
const strategy = { type: 'string', enum: ['percentage'] };
const deployment = object(
  {
    id: text,
    created_on: time,
    source: text,
    strategy,
    versions: list(portion),
    annotations: map,
    author_email: text,
  },
  ['id', 'created_on', 'source', 'strategy', 'versions'],
);
const secret = object({ name: text, type: { type: 'string', enum: ['secret_text'] }, text }, [
  'name',
  'type',
]);

const tagGateway = object(
  { enabled: yes, endpoint: text, hideOriginalIp: yes, measurementId: text, setUpTag: nullable(yes) },
  ['enabled', 'endpoint', 'hideOriginalIp', 'measurementId'],
);

const json = (schema: object) => ({ content: { 'application/json': { schema } } });
const failure = json({ $ref: '#/components/schemas/workers_api-response-common-failure' });

/** An operation with its answer's result, and the body of its request where it has one. */
function operation(result: object, requestBody?: object, query: readonly string[] = []) {
  const message = object({ code: { type: 'number' }, message: text }, ['code', 'message']);
  const envelope = object(
    { success: { type: 'boolean', enum: [true] }, errors: list(message), messages: list(message), result },
    ['success', 'errors', 'messages', 'result'],
  );
  return {
    parameters: query.map((name) => ({ in: 'query', name, schema: text })),
    ...(requestBody === undefined ? {} : { requestBody }),
    responses: { 200: json(envelope), '4XX': failure },
  };
}
const form = { content: { 'multipart/form-data': {} } };
const none = { nullable: true, type: 'object' };
const account = '/accounts/{account_id}';
const one = `${account}/workers/scripts/{script_name}`;
const workersDev = object({ enabled: yes, previews_enabled: yes }, ['enabled']);

export const CLOUDFLARE_OVERLAY: Overlay = {
  paths: {
    [`${account}/workers/scripts`]: { get: operation(list(script)) },
    [one]: {
      put: operation(uploaded, form, ['bindings_inherit', 'excludeScript']),
      delete: operation(none, undefined, ['force']),
    },
    [`${one}/settings`]: {
      get: operation(object({ ...scriptLevel, ...versionLevel })),
      patch: operation(object({ ...scriptLevel, ...versionLevel }), form),
    },
    [`${one}/script-settings`]: {
      get: operation(object(scriptLevel)),
      patch: operation(object(scriptLevel), json(object(scriptLevel))),
    },
    [`${one}/versions`]: {
      get: operation(object({ items: list(version) }, ['items'])),
      post: operation(wholeVersion, form, ['bindings_inherit']),
    },
    [`${one}/versions/{version_id}`]: { get: operation(wholeVersion) },
    [`${one}/deployments`]: {
      get: operation(object({ deployments: list(deployment) }, ['deployments'])),
      post: operation(
        deployment,
        json(object({ strategy, versions: list(portion), annotations: map }, ['strategy', 'versions'])),
      ),
    },
    [`${one}/deployments/{deployment_id}`]: { get: operation(deployment) },
    [`${one}/secrets`]: { get: operation(list(secret)), put: operation(secret, json(secret)) },
    [`${one}/secrets/{secret_name}`]: { delete: operation(none) },
    [`${one}/subdomain`]: { get: operation(workersDev), post: operation(workersDev, json(workersDev)) },
    '/zones/{zone_id}/dns_records/usage': {
      get: operation(
        object({ record_quota: nullable({ type: 'number' }), record_usage: { type: 'number' } }, [
          'record_quota',
          'record_usage',
        ]),
      ),
    },
    '/zones/{zone_id}/settings/google-tag-gateway/config': {
      get: operation(nullable(tagGateway)),
      put: operation(tagGateway, json(tagGateway)),
    },
    [`${account}/workers/services/{script_name}`]: {
      get: operation(
        object({ default_environment: object({ script }, ['script']) }, ['default_environment']),
      ),
    },
  },
  query: [
    ['/zones', 'get', 'per_page', { minimum: 1 }],
    [`${account}/storage/kv/namespaces`, 'get', 'per_page', { minimum: 1, maximum: 1000 }],
  ],
  optional: [
    [`${account}/workers/domains`, 'put', 'environment'],
    [`${account}/workers/domains`, 'put', 'zone_id'],
  ],
};
