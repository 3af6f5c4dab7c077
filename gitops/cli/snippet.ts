import { readManifest } from '../../sites/manifest/read.ts';
import { SitesRepo } from '../../sites/repo/sites-repo.ts';
import { embeddedOperator, environmentClient } from './client.ts';
import { Home } from './instance/home.ts';
import { mintToken } from './instance/issuer.ts';
import { type CreatedContainer, ManagementClient } from './instance/management-client.ts';
import type { CliContext } from './instance/provisioner-client.ts';
import { readRun } from './instance/run-file.ts';
import { SLOW_MS, timeoutMs } from './instance/timeout.ts';
import { CliError } from './output/cli-error.ts';
import { type OutputOptions, print } from './output/print.ts';

export interface SnippetVerbOptions extends OutputOptions {
  readonly for?: string;
  readonly domain?: string;
}

type Domain = CreatedContainer['domains'][number];

/** The role in which the command reads the embedded instance: the weakest one that sees tokens. */
const ROLE = 'editor';

/**
 * Prints what to paste into the pages of a site's domains and, for domains with a same-origin path, the configuration
 * of their own server for each product. With `--for`, prints only the configuration for that product.
 * Asks management, because git has only the hashes of the forwarder tokens.
 */
export async function snippet(context: CliContext, site: string, options: SnippetVerbOptions): Promise<void> {
  const { domains } = await containerOf(context, site);
  const chosen = domains.filter(({ domain }) => options.domain === undefined || domain === options.domain);
  if (chosen.length === 0) throw new CliError(`${site} has no domain ${options.domain}`);
  const product = options.for;
  if (product !== undefined) {
    const pathless =
      options.domain === undefined
        ? `${site} has no domain with a same-origin path`
        : `${options.domain} has no same-origin path`;
    return void process.stdout.write(configurationOf(chosen, { site, product, pathless }));
  }
  print(options, { site, domains: chosen }, ({ domains: all }) => all.map(render).join('\n'));
}

/**
 * The configuration for a product. Throws `CliError` unless exactly one of the domains has one. `pathless` says that
 * none of them has a path.
 */
function configurationOf(
  domains: readonly Domain[],
  { site, product, pathless }: { readonly site: string; readonly product: string; readonly pathless: string },
): string {
  const found = domains.flatMap(({ domain, sameOrigin }) => {
    const text = Object.entries(sameOrigin?.snippets ?? {}).find(([name]) => name === product)?.[1];
    return text === undefined ? [] : [{ domain, text }];
  });
  const [first, second] = found;
  if (second !== undefined) {
    const names = found.map(({ domain }) => domain).join(', ');
    throw new CliError(`${site} has several domains with a same-origin path: add --domain, one of ${names}`);
  }
  if (first !== undefined) return first.text;
  throw new CliError(
    domains.some(({ sameOrigin }) => sameOrigin !== null)
      ? 'the API shows no forwarder token of this domain: use the API token of an owner, admin or editor, or make a new forwarder token by POST …/domains/:domain/forwarder-token'
      : `${pathless}: set one by POST …/domains with sameOrigin`,
  );
}

function render({ domain, snippet: html, contentSecurityPolicy, sameOrigin }: Domain): string {
  const configurations = Object.entries(sameOrigin?.snippets ?? {}).map(
    ([product, text]) => `\n--- ${domain}${sameOrigin?.path}: ${product}\n${text}`,
  );
  const policy = `\n--- ${domain}: if the pages have a content security policy, add to it\n${contentSecurityPolicy}\n`;
  return `--- ${domain}: the pages' head\n${html}\n${policy}${configurations.join('')}`;
}

async function containerOf(context: CliContext, site: string): Promise<CreatedContainer> {
  const api = environmentClient(context);
  const container =
    api === null ? await embeddedContainer(context, site, ROLE) : await api.containerOfSite(site);
  if (container !== null) return container;
  throw new CliError(`there is no site ${site}, or the token's subject is not a member of its client`);
}

/** A container of the embedded instance, read by the subject `dev-<role>` of its client. */
export async function embeddedContainer(
  context: CliContext,
  site: string,
  role: string,
): Promise<CreatedContainer | null> {
  const home = new Home(context.home);
  const run = await readRun(home.at('run.json'));
  const repo = new SitesRepo(run.sitesRepo, null);
  const head = await repo.head();
  const file = head === null ? null : await repo.readSite(head, site);
  const parsed = file === null ? null : await readManifest(file.text, `${site}.yaml`);
  if (parsed === null || !parsed.ok) return null;
  const { client, container } = parsed.manifest;
  const subject = `dev-${role}`;
  await (await embeddedOperator(context)).setMember(client, subject, role);
  const token = await mintToken(await home.instance(), subject);
  const api = new ManagementClient(run.management.url, token, timeoutMs(context.env, SLOW_MS));
  return await api.container(container);
}
