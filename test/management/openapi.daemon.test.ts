import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { apiDocument } from '../../management/api-document.ts';
import { MANAGEMENT_ERRORS } from '../../management/http/errors.ts';
import { creation, World } from '../support/management/world.ts';
import { serviceAccountJson } from '../support/service-account.ts';
import { certificatePair } from '../support/tls/pair.ts';

interface Operation {
  readonly operationId: string;
  readonly parameters?: { in: string; name: string; required?: boolean }[];
  readonly requestBody?: {
    content: { 'application/json': { examples?: Record<string, { value: object }> } };
  };
  readonly responses: Record<string, { content?: Record<string, { schema: object }> }>;
}

let world: World;
// biome-ignore lint/suspicious/noExplicitAny: the document's own shape is what is tested
let document: any;
let operations: { path: string; method: string; operation: Operation }[];
beforeAll(async () => {
  world = await World.open();
  document = (await world.call('GET', '/openapi.json')).body;
  operations = Object.entries<Record<string, Operation>>(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
});
afterAll(() => world.close());

test('the document is OpenAPI 3.1, and has exactly the endpoints that exist', () => {
  expect(document.openapi).toBe('3.1.0');
  expect(operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`).sort()).toEqual([
    'DELETE /clients/{id}/handover-links/{link}',
    'DELETE /clients/{id}/invitations/{invitation}',
    'DELETE /clients/{id}/members/{subject}',
    'DELETE /clients/{id}/policy',
    'DELETE /clients/{id}/traffic',
    'DELETE /organisations/{id}/invitations/{invitation}',
    'DELETE /organisations/{id}/members/{subject}',
    'DELETE /policy',
    'DELETE /server-containers/{id}',
    'DELETE /server-containers/{id}/custom-domains',
    'DELETE /server-containers/{id}/domains',
    'DELETE /server-containers/{id}/loader-tokens/{token}',
    'DELETE /server-containers/{id}/profiles/{fpid}',
    'DELETE /server-containers/{id}/service-account',
    'DELETE /server-containers/{id}/traffic',
    'DELETE /tokens/{id}',
    'DELETE /webhooks/{id}',
    'GET /audit',
    'GET /changes',
    'GET /clients',
    'GET /clients/{id}',
    'GET /clients/{id}/handover-links',
    'GET /clients/{id}/invitations',
    'GET /clients/{id}/members',
    'GET /clients/{id}/policy',
    'GET /clients/{id}/traffic',
    'GET /clients/{id}/traffic/deletions',
    'GET /drift',
    'GET /ending',
    'GET /events',
    'GET /hosts',
    'GET /image-rollouts',
    'GET /image-rollouts/{id}',
    'GET /images',
    'GET /invitations',
    'GET /me',
    'GET /operations/{id}',
    'GET /organisations',
    'GET /organisations/{id}',
    'GET /organisations/{id}/clients',
    'GET /organisations/{id}/invitations',
    'GET /organisations/{id}/members',
    'GET /plans',
    'GET /plans/{checksum}',
    'GET /plugins',
    'GET /policy',
    'GET /requests',
    'GET /server-containers',
    'GET /server-containers/summary',
    'GET /server-containers/{id}',
    'GET /server-containers/{id}/checklist',
    'GET /server-containers/{id}/container-logs',
    'GET /server-containers/{id}/container-logs/live',
    'GET /server-containers/{id}/custom-domains',
    'GET /server-containers/{id}/custom-domains/{domain}',
    'GET /server-containers/{id}/domains/{domain}',
    'GET /server-containers/{id}/events',
    'GET /server-containers/{id}/history',
    'GET /server-containers/{id}/loader-tokens',
    'GET /server-containers/{id}/operations',
    'GET /server-containers/{id}/profiles/{fpid}',
    'GET /server-containers/{id}/requests',
    'GET /server-containers/{id}/requests/live',
    'GET /server-containers/{id}/resources',
    'GET /server-containers/{id}/traffic',
    'GET /server-containers/{id}/traffic/deletions',
    'GET /server-containers/{id}/verifications',
    'GET /session',
    'GET /tokens',
    'GET /traffic',
    'GET /usage',
    'GET /webhooks',
    'GET /webhooks/{id}',
    'GET /webhooks/{id}/deliveries',
    'PATCH /clients/{id}',
    'PATCH /organisations/{id}',
    'PATCH /server-containers/{id}',
    'PATCH /webhooks/{id}',
    'POST /bulk',
    'POST /clients',
    'POST /clients/{id}/archive',
    'POST /clients/{id}/handover-links',
    'POST /clients/{id}/invitations',
    'POST /clients/{id}/transfer',
    'POST /clients/{id}/unarchive',
    'POST /image-rollouts',
    'POST /image-rollouts/{id}/back',
    'POST /image-rollouts/{id}/stop',
    'POST /invitations/accept',
    'POST /organisations',
    'POST /organisations/{id}/archive',
    'POST /organisations/{id}/invitations',
    'POST /organisations/{id}/unarchive',
    'POST /plans',
    'POST /plans/{checksum}/approve',
    'POST /server-containers',
    'POST /server-containers/{id}/checklist/export',
    'POST /server-containers/{id}/clone',
    'POST /server-containers/{id}/custom-domains',
    'POST /server-containers/{id}/custom-domains/{domain}/check',
    'POST /server-containers/{id}/domains',
    'POST /server-containers/{id}/domains/{domain}/check',
    'POST /server-containers/{id}/domains/{domain}/forwarder-token',
    'POST /server-containers/{id}/loader-token',
    'POST /server-containers/{id}/loader-tokens/rotate',
    'POST /server-containers/{id}/protect',
    'POST /server-containers/{id}/restore',
    'POST /server-containers/{id}/resume',
    'POST /server-containers/{id}/revert',
    'POST /server-containers/{id}/suspend',
    'POST /server-containers/{id}/verify',
    'POST /session/logout',
    'POST /tokens',
    'POST /webhooks',
    'POST /webhooks/{id}/deliveries/{delivery}/replay',
    'POST /webhooks/{id}/secret',
    'POST /webhooks/{id}/test',
    'PUT /clients/{id}/members/{subject}',
    'PUT /clients/{id}/policy',
    'PUT /organisations/{id}/members/{subject}',
    'PUT /policy',
    'PUT /server-containers/{id}/certificate',
    'PUT /server-containers/{id}/config',
    'PUT /server-containers/{id}/domains/order',
    'PUT /server-containers/{id}/service-account',
  ]);
});

test('the document is the one from which the types of clients are generated', async () => {
  expect(document).toEqual(JSON.parse(JSON.stringify(await apiDocument())));
});

test('the document passes a validator of the specification, which finds a planted fault', async () => {
  const validator = new Validator();
  expect(await validator.validate(structuredClone(document))).toEqual({ valid: true });
  expect(validator.version).toBe('3.1');
  const broken = structuredClone(document);
  delete broken.paths['/clients'].post.responses;
  broken.info = {};
  expect(await new Validator().validate(broken)).toMatchObject({ valid: false });
});

/** A commit that changed the container and can be reverted. */
async function newCommit(id: string): Promise<string> {
  const at = `/server-containers/${id}`;
  await world.call('PATCH', at, { as: 'owner', body: { name: 'To be reverted' } });
  return (await world.call('GET', `${at}/history?limit=1`, { as: 'owner' })).body.history[0].commit;
}

async function domainsOf(id: string): Promise<string[]> {
  const { body } = await world.call('GET', `/server-containers/${id}`, { as: 'owner' });
  return body.domains.map(({ domain }: { domain: string }) => domain);
}

async function originOf(id: string): Promise<string> {
  return (await world.call('GET', `/server-containers/${id}`, { as: 'owner' })).body.hostnames.origin;
}

test('the document has an example for every body, and the API accepts each example', async () => {
  const client = await world.client();
  // The document has no private key, not even a useless one, so the test adds one.
  const { private_key } = serviceAccountJson();
  const bodied = operations.filter(({ operation }) => operation.requestBody !== undefined);
  expect(bodied.length).toBeGreaterThan(5);
  let [id, webhook] = ['', ''];
  const made = await world.call('POST', '/organisations', { as: 'root', body: { name: 'Agency' } });
  const organisation = made.body.id;
  const invited = await world.call('POST', `/clients/${client}/invitations`, {
    as: 'owner',
    body: { role: 'viewer' },
  });
  const idOf = (path: string) =>
    path.startsWith('/clients')
      ? client
      : path.startsWith('/organisations')
        ? organisation
        : path.startsWith('/webhooks')
          ? webhook
          : id;
  // Only operators create clients and organisations, make plans and set images. Only owners transfer containers.
  const callerOf = (path: string, example: object) =>
    (/^\/(clients|organisations|plans|policy)/.test(path) && !path.endsWith('/transfer')) ||
    'image' in example
      ? 'root'
      : 'owner';
  // The creation comes first, because the others change the created container.
  for (const { path, method, operation } of bodied.toSorted((a, b) => rank(a.path) - rank(b.path))) {
    const examples = Object.values(operation.requestBody?.content['application/json'].examples ?? {});
    expect(examples.length, operation.operationId).toBeGreaterThan(0);
    for (const { value: example } of examples) {
      const answer = await world.call(
        method.toUpperCase() as 'POST', // OpenAPI writes methods in lower case
        path.replace('{id}', idOf(path)).replace('{subject}', 'ada').replace('{domain}', 'shop.acme.example'),
        {
          as: callerOf(path, example),
          body: {
            ...example,
            ...('clientId' in example ? { clientId: client } : {}),
            ...('client' in example ? { client } : {}),
            ...('organisation' in example ? { organisation } : {}),
            ...('to' in example ? { to: client, containers: [id] } : {}),
            ...(path === '/invitations/accept' ? { token: invited.body.token } : {}),
            ...('private_key' in example ? { private_key } : {}),
            ...('privateKey' in example ? await certificatePair(await originOf(id)) : {}),
            ...('commit' in example ? { commit: await newCommit(id) } : {}),
            ...(path.endsWith('/order') ? { domains: await domainsOf(id) } : {}),
          },
        },
      );
      expect(answer.status, `${operation.operationId}: ${JSON.stringify(answer.body)}`).toBeLessThan(300);
      if (operation.operationId === 'createContainer') id ||= answer.body.id;
      if (operation.operationId === 'createWebhook') webhook ||= answer.body.id;
    }
  }
});

test('every example in the document is sent or compared by a test', () => {
  const bodies = operations.map(
    ({ operation }) => operation.requestBody?.content['application/json'].examples,
  );
  const given = new Set(bodies.filter((examples) => examples !== undefined));
  // The tests below compare the examples of text answers with the schemas or with actual answers.
  const ofTexts = new Set<unknown>(texts().map(({ examples }) => examples));
  const others: unknown[] = [];
  // Only `examples` of a body are sent. An `example`, or `examples` of a schema or a parameter, are not.
  JSON.stringify(document, (key, value) => {
    if (/^examples?$/.test(key) && !given.has(value) && !ofTexts.has(value)) others.push(value);
    return value;
  });
  expect(given.size).toBeGreaterThan(5);
  expect(others).toEqual([]);
});

/** The answers that are not JSON, with their examples. */
function texts() {
  return operations.flatMap(({ path, operation }) =>
    Object.entries(operation.responses['200']?.content ?? {}).flatMap(([media, { schema }]) =>
      media === 'application/json'
        ? []
        : [{ path, media, ...(schema as { description: string; examples: string[] }) }],
    ),
  );
}

test('the document declares the event streams and exports beside JSON, with examples of their rows', () => {
  expect(texts().map(({ path, media }) => `${path} ${media}`)).toEqual([
    '/server-containers/{id}/events text/event-stream',
    '/events text/event-stream',
    '/server-containers/{id}/requests application/x-ndjson',
    '/server-containers/{id}/requests text/csv',
    '/server-containers/{id}/requests/live text/event-stream',
    '/requests application/x-ndjson',
    '/requests text/csv',
    '/server-containers/{id}/container-logs/live text/event-stream',
    '/audit application/x-ndjson',
    '/audit text/csv',
  ]);
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: 'https://document.test/', ...document });
  const rowOf = (path: string) => {
    if (path.endsWith('/container-logs/live')) return 'ContainerLog';
    return path.endsWith('/events') ? 'ContainerEvent' : path === '/audit' ? 'AuditEntry' : 'EdgeRequest';
  };
  for (const { path, media, description, examples } of texts()) {
    expect([description.length > 20, examples.length]).toEqual([true, 1]);
    const [text = ''] = examples;
    const name = rowOf(path);
    const isRow = ajv.getSchema(`https://document.test/#/components/schemas/${name}`);
    if (media === 'text/csv') {
      const [head = '', line = ''] = text.split('\r\n');
      const { properties } = document.components.schemas[name];
      expect(Object.keys(properties)).toEqual(expect.arrayContaining(head.split(',')));
      expect(line).not.toBe('');
      continue;
    }
    const data = media === 'text/event-stream' ? (/^data: (.*)$/m.exec(text)?.[1] ?? '') : text;
    expect([path, isRow?.(JSON.parse(data)), isRow?.errors]).toEqual([path, true, null]);
  }
});

test('the actual streams and exports have the form of the examples', async () => {
  const client = await world.client();
  const body = creation(client, 'streamed.example');
  const { id } = (await world.call('POST', '/server-containers', { as: 'owner', body })).body;
  const exampleOf = (path: string, type: string) =>
    texts().find((one) => one.path === path && one.media === type)?.examples[0] ?? '';
  const url = await world.listen();
  const get = async (path: string, accept: string) =>
    await fetch(`${url}${path}`, {
      headers: { accept, authorization: `Bearer ${await world.issuer.token('owner')}` },
    });
  for (const type of ['application/x-ndjson', 'text/csv']) {
    const answer = await get(`/audit?client=${client}`, type);
    expect(answer.headers.get('content-type')).toBe(`${type}; charset=utf-8`);
    const [first = ''] = (await answer.text()).split(/\r?\n/);
    const [example = ''] = exampleOf('/audit', type).split(/\r?\n/);
    if (type === 'text/csv') expect(first).toBe(example);
    else expect(Object.keys(JSON.parse(first)).sort()).toEqual(Object.keys(JSON.parse(example)).sort());
  }
  const stream = await get(`/server-containers/${id}/events`, 'text/event-stream');
  expect(stream.headers.get('content-type')).toBe('text/event-stream');
  const names = (text: string) => [
    ...[...text.matchAll(/^(\w+): /gm)].map(([, name]) => name),
    Object.keys(JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? '{}')).sort(),
  ];
  let text = '';
  for await (const part of stream.body ?? []) {
    text += new TextDecoder().decode(part);
    if (text.includes('\ndata: ') && text.endsWith('\n\n')) break;
  }
  const event = text.split('\n\n').find((one) => one.startsWith('id: ')) ?? '';
  expect(names(event)).toEqual(names(exampleOf('/events', 'text/event-stream')));
});

const rank = (path: string) => (['/server-containers', '/webhooks'].includes(path) ? 0 : 1);

test('the document names each operation once, and declares its path parameters and answers', () => {
  const ids = operations.map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
  for (const { path, operation } of operations) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path');
    expect(declared.map(({ name }) => name).sort()).toEqual(inPath.sort());
    expect(declared.every(({ required }) => required)).toBe(true);
    const statuses = Object.keys(operation.responses);
    expect(statuses.some((status) => status.startsWith('2'))).toBe(true);
    expect(statuses).toEqual(expect.arrayContaining(['401', '500', '503']));
  }
});

test('every request that changes something can be planned by a dry run', () => {
  const missing = operations
    .filter(({ method, path }) => method !== 'get' && !path.startsWith('/session/'))
    .filter(({ operation }) => !(operation.parameters ?? []).some(({ name }) => name === 'dryRun'))
    .map(({ method, path }) => `${method.toUpperCase()} ${path}`);
  expect(missing).toEqual([]);
});

test('the document has no dangling reference, and only schemas that a validator can compile', () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: 'https://document.test/', ...document });
  const references = new Set<string>();
  JSON.stringify(document, (key, value) => {
    if (key === '$ref') references.add(value);
    return value;
  });
  expect(references.size).toBeGreaterThan(1);
  for (const reference of references) {
    expect(ajv.getSchema(`https://document.test/${reference}`), reference).toBeTypeOf('function');
  }
});

test('the document describes the actual answers', async () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: 'https://document.test/', ...document });
  const schemaOf = (name: string) => {
    const validate = ajv.getSchema(`https://document.test/#/components/schemas/${name}`);
    if (validate === undefined) throw new Error(`no schema ${name}`);
    return validate;
  };
  const body = creation(await world.client(), 'described.example');
  const made = await world.call('POST', '/server-containers', { as: 'owner', body });
  expect(schemaOf('Container')(made.body)).toBe(true);
  expect(schemaOf('Container')({ ...made.body, status: 'sleeping' })).toBe(false);
  const refused = await world.call('POST', '/server-containers', { as: 'owner', body: {} });
  expect(schemaOf('Problem')(refused.body)).toBe(true);
});

test('the document lists every error code', () => {
  expect(document.components.schemas.Problem.properties.code.enum).toEqual(Object.keys(MANAGEMENT_ERRORS));
});

test('the document’s pages load nothing from other hosts', async () => {
  const page = await world.management?.app.inject('/docs/');
  expect(page?.statusCode).toBe(200);
  expect([...(page?.body ?? '').matchAll(/(?:src|href)="(https?:[^"]+)"/g)]).toEqual([]);
});
