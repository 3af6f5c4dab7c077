import { request } from 'undici';
import { z } from 'zod';
import type { Step } from './steps.ts';
import { Violation } from './violation.ts';
import type { World } from './world.ts';

type Of<Kind extends Step['kind']> = Extract<Step, { kind: Kind }>;
type Method = 'GET' | 'POST' | 'DELETE';

/** Webhooks that a client may have (docs/http.md, Limits), and tokens that `world.ts` allows. */
const LIMITS = { webhooks: 20, tokens: 5 } as const;
const BURST = 30;

const made = z.object({ id: z.string(), value: z.string().optional() });
const listed = z.object({
  items: z.array(z.object({ id: z.string(), enabled: z.boolean().default(true) })),
});
const planned = z.object({
  plan: z.object({
    checksum: z.string(),
    changes: z.array(z.object({ path: z.string(), to: z.unknown() })),
  }),
});

const shown = z.object({
  containers: z.array(
    z.object({
      state: z.object({ name: z.string() }),
      hostnames: z.object({ edge: z.string() }),
      loaderToken: z.string(),
    }),
  ),
});

/** Calls the management API as a member of the demo's client, by default with its owner's token. */
function caller({ run }: World, token = run.demo.token) {
  return async (method: Method, path: string, body?: object, headers: Record<string, string> = {}) => {
    const answer = await request(`${run.management.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.body.text();
    if (answer.statusCode === 500) throw new Violation('answers', `${method} ${path} answers 500: ${text}`);
    return { status: answer.statusCode, body: text === '' ? null : (JSON.parse(text) as unknown) };
  };
}

/** The demo's container; `null`: nothing of it can be changed now. */
async function demoContainer(world: World) {
  const { body } = await caller(world)('GET', '/server-containers?limit=10');
  const containers = z.object({
    containers: z.array(z.object({ id: z.string(), client: z.string(), loaderToken: z.string() })),
  });
  return containers.parse(body).containers[0] ?? null;
}

const membership = z.object({ clients: z.tuple([z.object({ id: z.string() })]) });
async function demoClient(world: World): Promise<string> {
  return membership.parse((await caller(world)('GET', '/me')).body).clients[0].id;
}

/** Sends more creations at once than a limit allows, and counts what was made. Removes it again. */
export async function burst(world: World, { what, isFresh }: Of<'burst'>): Promise<void> {
  const call = caller(world);
  const client = await demoClient(world);
  const body =
    what === 'tokens'
      ? { name: 'burst', client, scopes: ['viewer'] }
      : { client, url: 'http://127.0.0.1:9/' };
  const answers = await Promise.all(Array.from({ length: BURST }, () => call('POST', `/${what}`, body)));
  const { items } = listed.parse((await call('GET', `/${what}?client=${client}`)).body);
  for (const { id } of items) await call('DELETE', `/${what}/${id}`);
  const done = answers.filter(({ status }) => status === 201).length;
  const isTooFew = isFresh === true && done < LIMITS[what];
  if (items.length > LIMITS[what] || done > LIMITS[what] || isTooFew) {
    throw new Violation('limits', `${items.length} ${what}, where ${LIMITS[what]} are allowed`);
  }
}

/** Revokes a token that made others, and uses all that it left. */
export async function leave(world: World, { depth, isFresh }: Of<'leave'>): Promise<void> {
  const client = await demoClient(world);
  const call = caller(world);
  const tokens: { id: string; value: string }[] = [];
  for (let by = call; tokens.length < depth; ) {
    const { status, body } = await by('POST', '/tokens', { name: 'leaver', client, scopes: ['admin'] });
    if (status !== 201) break; // a limit of requests
    const { id, value = '' } = made.parse(body);
    tokens.push({ id, value });
    by = caller(world, value);
  }
  const [first] = tokens;
  if (isFresh && tokens.length < depth) throw new Violation('leavers', `${tokens.length} tokens were made`);
  if (first === undefined) return;
  const hook = await caller(world, tokens.at(-1)?.value)('POST', '/webhooks', {
    client,
    url: 'http://127.0.0.1:9/',
  });
  await call('DELETE', `/tokens/${first.id}`);
  for (const { value } of tokens) {
    const { status } = await caller(world, value)('GET', '/me');
    if (status !== 401) throw new Violation('leavers', `a token of a revoked token answers ${status}`);
  }
  if (isFresh && hook.status !== 201) throw new Violation('leavers', 'no webhook was made');
  if (hook.status !== 201) return;
  const { id } = made.parse(hook.body);
  const { items } = listed.parse((await call('GET', `/webhooks?client=${client}`)).body);
  await call('DELETE', `/webhooks/${id}`);
  if (items.some((item) => item.id === id && item.enabled))
    throw new Violation('leavers', 'a webhook of a revoked token is still enabled');
}

/**
 * Plans a new loader token, and sends the change with the plan's checksum: what was planned is saved, also if another site
 * was changed meanwhile. If this container was changed, it is refused.
 */
export async function plan(
  world: World,
  { meanwhile, isFresh }: Of<'plan'>,
  changeOther: () => Promise<unknown>,
): Promise<void> {
  const call = caller(world);
  const container = await demoContainer(world);
  if (container === null) return;
  const path = `/server-containers/${container.id}/loader-token`;
  const dry = await call('POST', `${path}?dryRun=1`, {});
  if (isFresh && dry.status !== 200) throw new Violation('plans', `a dry run is answered with ${dry.status}`);
  if (dry.status !== 200) return; // git or its host is away, or its manifest is broken
  const { checksum, changes } = planned.parse(dry.body).plan;
  if (meanwhile === 'another site') await changeOther();
  const own = meanwhile === 'this site' ? await call('POST', path, {}) : null;
  const sent = await call('POST', path, {}, { 'x-tagyard-plan': checksum });
  if (own?.status === 200) {
    if (sent.status === 412 || sent.status === 409) return;
    throw new Violation('plans', `a plan from before another change is answered with ${sent.status}`);
  }
  if (sent.status !== 200) {
    if (sent.status !== 412) return;
    throw new Violation('plans', `refused as changed, after a change of ${meanwhile}`);
  }
  const wanted = changes.find((change) => change.path === 'loaderToken')?.to;
  const now = await demoContainer(world);
  if (now?.loaderToken !== wanted)
    throw new Violation('plans', `${String(wanted)} was planned, and ${now?.loaderToken} is saved`);
}

/** What management says of its container, compared with what a visitor gets. `null`: they agree. */
export async function disagreement(world: World): Promise<string | null> {
  const { body } = await caller(world)('GET', '/server-containers?limit=10');
  const { containers } = shown.parse(body);
  for (const { state, hostnames, loaderToken } of containers) {
    const path = `/l/${loaderToken}.js`;
    const { status } = await world.call.edge(hostnames.edge, 'GET', path);
    if (state.name === 'serving' && status !== 200) return `its state is serving, and ${path} is ${status}`;
    if (state.name === 'off' && status !== 403) return `its state is off, and ${path} is ${status}`;
  }
  return null;
}
