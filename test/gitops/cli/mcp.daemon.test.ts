import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callTool } from '../../../gitops/cli/mcp/call.ts';
import { toolsOf } from '../../../gitops/cli/mcp/tools.ts';
import { CLI } from '../../support/cli/command.ts';
import { CONFIG, creation, World } from '../../support/management/world.ts';

let world: World;
let url: string;
let client: string;
let container: string;
beforeAll(async () => {
  world = await World.open({ logLevel: 'silent' });
  url = await world.listen();
  client = await world.client();
  const body = creation(client, 'tools.example');
  container = (await world.call('POST', '/server-containers', { as: 'owner', body })).body.id;
});
const connected = new Map<string, Promise<Client>>();
afterAll(async () => {
  for (const one of connected.values()) await (await one).close();
  await world.close();
});

/** The SDK's own client, connected to the command as an assistant's program starts it. */
async function connect(subject: string, ...options: string[]): Promise<Client> {
  const key = [subject, ...options].join(' ');
  const known = connected.get(key) ?? start(subject, options);
  connected.set(key, known);
  return await known;
}

async function start(subject: string, options: readonly string[]): Promise<Client> {
  const assistant = new Client({ name: 'test', version: '1.0.0' });
  const env = { MANAGEMENT_URL: url, TAGYARD_TOKEN: await world.issuer.token(subject) };
  await assistant.connect(
    new StdioClientTransport({ command: process.execPath, args: [CLI, 'mcp', ...options], env }),
  );
  return assistant;
}

async function use(assistant: Client, name: string, given: Record<string, unknown> = {}) {
  const { content, isError = false } = await assistant.callTool({ name, arguments: given });
  const [first] = content as readonly { type: string; text: string }[]; // the SDK's type permits older results
  return { isError, text: first?.text ?? '' };
}

test('offers the operations that read, and calls them', async () => {
  const assistant = await connect('viewer');
  const { tools } = await assistant.listTools();
  const names = tools.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['listContainers', 'getContainer', 'listContainerEvents']));
  expect(names).not.toContain('createContainer');
  expect(tools.every(({ annotations }) => annotations?.readOnlyHint)).toBe(true);
  expect(tools.find(({ name }) => name === 'getContainer')?.inputSchema).toMatchObject({
    type: 'object',
    properties: { id: { type: 'string' } },
    required: ['id'],
  });

  const listed = await use(assistant, 'listContainers', { limit: 5 });
  expect(JSON.parse(listed.text).containers).toMatchObject([{ id: container }]);
  const read = await use(assistant, 'getContainer', { id: container });
  expect(read.text).toContain('tools.example');
  expect(read.text).toMatch(/if-match for the next change: "[^"]+"$/);
});

test.each<[string, string, () => Record<string, unknown>, RegExp]>([
  ['a value that the API refuses', 'listContainers', () => ({ limit: 'many' }), /\n {2}limit: /],
  [
    'an argument that no tool has',
    'listContainers',
    () => ({ colour: 1 }),
    /no argument colour: it takes .*clientId/,
  ],
  ['a missing argument', 'getContainer', () => ({}), /^getContainer needs id$/],
  ['an unknown container', 'getContainer', () => ({ id: client }), /There is no such container/],
  ['an id that would change the path', 'getContainer', () => ({ id: '..' }), /id can't be/],
  ['a tool that does not exist', 'openSesame', () => ({}), /there is no tool openSesame/],
  ['a change', 'removeContainer', () => ({ id: container }), /only reads: start it with --allow-changes/],
])('answers %s with the problem', async (_what, name, given, problem) => {
  const answered = await use(await connect('owner'), name, given());
  expect(answered).toEqual({ isError: true, text: expect.stringMatching(problem) });
});

test('changes something only with --allow-changes, and only what the caller may change', async () => {
  const assistant = await connect('owner', '--allow-changes');
  const { tools } = await assistant.listTools();
  const creating = tools.find(({ name }) => name === 'createContainer');
  expect(creating?.annotations?.readOnlyHint).toBe(false);
  expect(JSON.stringify(creating?.inputSchema)).not.toContain('#/components');
  const changed = await use(assistant, 'changeContainer', { id: container, body: { name: 'By a tool' } });
  expect(changed).toMatchObject({ isError: false, text: expect.stringContaining('By a tool') });
  const viewer = await connect('viewer', '--allow-changes');
  const refused = await use(viewer, 'changeContainer', { id: container, body: { name: 'Other' } });
  expect(refused).toMatchObject({ isError: true, text: expect.stringContaining('viewer') });
});

test('sends a body with the headers of the operation, and shows its fields at fault', async () => {
  const assistant = await connect('owner', '--allow-changes');
  const made = { ...creation(client, 'keyed.example'), containerConfigB64: CONFIG };
  const given = { 'idempotency-key': 'tool-1', body: made };
  const first = await use(assistant, 'createContainer', given);
  const second = await use(assistant, 'createContainer', given);
  expect(second.text).toBe(first.text);
  const wrong = await use(assistant, 'createContainer', { body: { ...made, domains: [] } });
  expect(wrong).toEqual({ isError: true, text: expect.stringMatching(/\n {2}domains: /) });
});

test('cuts an answer that is too long', async () => {
  const [tool] = toolsOf((await world.call('GET', '/openapi.json')).body).filter(
    ({ name }) => name === 'listContainers',
  );
  if (tool === undefined) throw new Error('no such tool');
  const token = () => world.issuer.token('owner');
  const text = await callTool(tool, {}, { url, token, timeoutMs: 10_000, mostCharacters: 100 });
  expect(text).toMatch(/^[\s\S]{100}\n\n\[cut after 100 of \d+ characters: ask for less/);
});

test('each tool has distinct argument names, and a name that every assistant permits', async () => {
  const tools = toolsOf((await world.call('GET', '/openapi.json')).body);
  for (const { name, arguments: all } of tools) {
    expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(new Set(all.map((one) => one.name)).size).toBe(all.length);
  }
});
