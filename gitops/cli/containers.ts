import { spawn } from 'node:child_process';
import { text as readAll } from 'node:stream/consumers';
import { domainToASCII } from 'node:url';
import { styleText } from 'node:util';
import type { ListItem, TagyardClient } from '../../base/client/client.ts';
import { shownHostsIn } from '../../base/host-name.ts';
import { counted } from '../../base/text.ts';
import { SITE_STATES } from '../report/site-state.ts';
import { answered, managementApi } from './client.ts';
import type { CliContext } from './instance/provisioner-client.ts';
import { CliError, UsageError } from './output/cli-error.ts';
import { header, type OutputOptions, print } from './output/print.ts';
import { table } from './output/table.ts';
import { stateColour, statesIn } from './site-states.ts';

export interface ListOptions extends OutputOptions {
  readonly state?: string;
  readonly client?: string;
  readonly search?: string;
  readonly names?: true;
}

export interface CreateOptions extends OutputOptions {
  readonly domain: readonly string[];
  readonly config: string;
  readonly client?: string;
  readonly siteId?: string;
  readonly consent?: 'opt_out' | 'required';
  readonly tls?: string;
  readonly plan?: true;
}

type Container = ListItem<'/server-containers'>;

/** Prints the caller's containers, those that need something first. `--names` prints their sites only. */
export async function list(context: CliContext, options: ListOptions): Promise<void> {
  const states = statesIn(options.state);
  const found = await answered(async () => {
    const { api } = await managementApi(context);
    return await containersOf(api, {
      ...(states === null ? {} : { state: states }),
      ...(options.client === undefined ? {} : { client: options.client }),
      ...(options.search === undefined ? {} : { q: options.search }),
    });
  });
  // Without a filter, a list shows what there is.
  const shown = states === null ? found.filter(({ state }) => state.name !== 'removed') : found;
  if (options.names) {
    process.stdout.write(shown.map(({ siteId }) => `${siteId}\n`).join(''));
    return;
  }
  print(options, shown, () =>
    shown.length === 0
      ? 'no container\n'
      : shownHostsIn(table([header('site', 'name', 'domains', 'state', ''), ...shown.map(rowOf)])),
  );
}

/** Opens a container's page in the console, or the console, and prints its address. */
export async function open(context: CliContext, site: string | undefined): Promise<void> {
  const address = await answered(async () => {
    const { api, url } = await managementApi(context);
    const console = `${url.replace(/\/+$/, '')}/console`;
    if (site === undefined) return console;
    const found = (await containersOf(api, { q: site })).find(({ siteId }) => siteId === site);
    if (found !== undefined) return `${console}/containers/${found.id}`;
    throw new CliError(`there is no site ${site}, or the token's subject is not a member of its client`);
  });
  process.stdout.write(`${address}\n`);
  // In a script, nothing shall open.
  if (process.stdout.isTTY) openInBrowser(address);
}

/**
 * Creates a container, or shows what would be committed with `--plan`. The container config is a secret: `--config -`
 * reads it from standard input, so that it stands in no shell's history.
 */
export async function create(context: CliContext, name: string, options: CreateOptions): Promise<void> {
  const pages = options.domain.map(pageOf);
  const config = options.config === '-' ? (await readAll(process.stdin)).trim() : options.config;
  await answered(async () => {
    const { api } = await managementApi(context);
    const body = {
      client: options.client ?? (await onlyClient(api)),
      name,
      domains: pages.map(({ domain }) => domain),
      webTagIds: Object.fromEntries(pages.map(({ domain, tagId }) => [domain, tagId])),
      containerConfigB64: config,
      ...(options.siteId === undefined ? {} : { siteId: options.siteId }),
      ...(options.consent === undefined ? {} : { consent: options.consent }),
      // The API refuses unknown ones, and names those that it has.
      ...(options.tls === undefined ? {} : { tls: options.tls as 'files' | 'acme' }),
    };
    if (options.plan) {
      const { data } = await api.post('/server-containers', { params: { query: { dryRun: '1' } }, body });
      print(options, data, () => `${JSON.stringify(data.plan, null, 2)}\n`);
      return;
    }
    const { data } = await api.post('/server-containers', { body });
    print(options, data, ({ siteId, state }) => {
      const next = ['status', 'snippet', 'open'].map((verb) => `  tagyard ${verb} ${siteId}\n`).join('');
      return `${siteId}: ${state.sentence}\n${next}`;
    });
  });
}

type Query = { state?: (typeof SITE_STATES)[number][]; client?: string; q?: string };

async function containersOf(api: TagyardClient, query: Query): Promise<Container[]> {
  const init = { params: { query: { ...query, view: 'summary' as const, limit: 200 } } };
  const all = await allOf(api.list('/server-containers', init));
  return all.sort((one, other) => rank(one) - rank(other) || one.siteId.localeCompare(other.siteId));
}

async function allOf<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** Failures first; what is removed or off by someone's decision needs nothing. */
function rank({ state: { name } }: Container): number {
  return SITE_STATES.indexOf(name) + (name === 'removed' || name === 'off' ? SITE_STATES.length : 0);
}

function rowOf({ siteId, name, domains, state }: Container): string[] {
  const named = domains.map((one) => (typeof one === 'string' ? one : one.domain));
  const cause = state.name === 'serving' && state.detail === null ? '' : state.sentence;
  return [siteId, name, named.join(', '), styleText(stateColour(state.name), state.name), cause];
}

/** `<domain>=<web tag id>`, the domain also in Unicode. */
function pageOf(text: string): { readonly domain: string; readonly tagId: string } {
  const [domain = '', tagId = ''] = text.split('=');
  if (domain === '' || tagId === '') {
    throw new UsageError(`--domain ${text}: give it as <domain>=<web tag id>, like shop.example=GTM-ABC1234`);
  }
  return { domain: domainToASCII(domain) || domain, tagId };
}

async function onlyClient(api: TagyardClient): Promise<string> {
  const clients = await allOf(api.list('/clients'));
  const [first, second] = clients;
  if (first !== undefined && second === undefined) return first.id;
  if (first === undefined) throw new CliError('you are a member of no client: an operator adds one');
  const names = clients.slice(0, 20).map(({ id, name }) => `\n  ${id}  ${name}`);
  throw new UsageError(
    `you are a member of ${counted(clients.length, 'client')}: add --client <id>${names.join('')}`,
  );
}

function openInBrowser(address: string): void {
  const command = { darwin: 'open', win32: 'explorer' }[process.platform as string] ?? 'xdg-open';
  // Without a browser the printed address is all there is.
  spawn(command, [address], { stdio: 'ignore', detached: true })
    .on('error', () => undefined)
    .unref();
}
