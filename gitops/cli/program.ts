import { resolve } from 'node:path';
import { Argument, Command, Option } from 'commander';
import { RELEASE } from '../../base/release.ts';
import { PRODUCTS } from '../../sites/requests/products.ts';
import type { BackupOptions } from './backup.ts';
import type { CheckOptions } from './check.ts';
import type { CiOptions } from './ci.ts';
import { completionScript, SHELLS, type ShellName } from './completion.ts';
import type { CreateOptions, ListOptions } from './containers.ts';
import type { DownOptions } from './down.ts';
import type { EventsOptions } from './events.ts';
import type { ImageOptions } from './image.ts';
import type { ImportOptions } from './import.ts';
import type { InitOptions } from './init.ts';
import type { Key, RotateOptions } from './keys.ts';
import type { LogsOptions } from './logs.ts';
import type { McpVerbOptions } from './mcp.ts';
import { CliError, WRONG_USAGE } from './output/cli-error.ts';
import { nodeProblem } from './output/node-version.ts';
import type { RestoreOptions } from './restore.ts';
import type { SnippetVerbOptions } from './snippet.ts';

/**
 * The verbs of `tagyard` with their options. A verb's own code is loaded when it runs: help and version need none of it,
 * and answer on versions of Node that nothing else runs on.
 */
export function program(env: NodeJS.ProcessEnv): Command {
  const home = resolve(env.TAGYARD_HOME || '.tagyard');
  const tagyard = new Command('tagyard')
    .description(
      'Server-side tag containers for many clients, on your own hosts, with git as the desired state.',
    )
    .version(RELEASE)
    .addHelpText('after', EXAMPLES)
    // Commander has written the message, or the help that was asked for.
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : WRONG_USAGE))
    // The option below stands before the verb; some verbs have one of the same name.
    .enablePositionalOptions()
    .option(
      '--env-file <file>',
      'a file of settings instead of .env, for example of the host of this machine',
    )
    .hook('preAction', async () => {
      const problem = nodeProblem();
      if (problem !== null) throw new CliError(problem);
      const { envFile } = tagyard.opts<{ envFile?: string }>();
      if (envFile === undefined) return;
      Object.assign(env, await (await import('./check.ts')).withFile(envFile, env));
      // The host that a person names counts before an instance of this folder.
      const url = (await import('./instance/provisioner-client.ts')).hostUrl(env);
      if (!env.INFRA_PROVISIONER_URL && url !== undefined) env.INFRA_PROVISIONER_URL = url;
    });

  tagyard.commandsGroup('Run:');
  tagyard
    .command('up')
    .description('run a whole instance on this machine until Ctrl-C')
    .action(async () => (await import('./up/up.ts')).runInstance(home, env));
  tagyard
    .command('init')
    .description('set up a host for production: keys, settings, database roles, units (docs/production.md)')
    .option('--answers <file>', 'a file of answers (YAML or JSON), so that nothing is asked')
    .option('--set <NAME=value>', 'one answer; repeat it for more', collect, [])
    .option('--root <folder>', 'write below this folder, and change nothing else of this machine', '')
    .option('--yes', 'agree to each step; files that a person changed stay as they are')
    .action(async (options: InitOptions) => (await import('./init.ts')).init({ home, env }, options));
  tagyard
    .command('down')
    .description(
      'remove everything that this host has made, for good (docs/operate.md, Leave); lists it and asks',
    )
    .requiredOption('--purge', 'remove it; an instance that only stops needs Ctrl-C')
    .option('--yes', 'do not ask')
    .action(async (options: DownOptions) => (await import('./down.ts')).purge({ home, env }, options));
  tagyard
    .command('token')
    .description('mint a development JWT (embedded instance only)')
    .requiredOption('--client <id>', 'the client that the subject is a member of')
    .option('--role <role>', 'the role of the subject in that client', 'owner')
    .action(async (options: { client: string; role: string }) =>
      (await import('./token.ts')).token({ home, env }, options),
    );
  tagyard.commandsGroup('Containers:');
  tagyard
    .command('list')
    .description('list the containers that you may see, those that need something first')
    .option('--state <states>', 'only these states, comma-separated, for example failing,waits_for_dns')
    .option('--client <id>', 'only those of this client')
    .option('--search <text>', 'part of the name, the site or a domain')
    .option('--names', 'print the sites only, one a line')
    .option('--json', 'print them as JSON')
    .action(async (options: ListOptions) => (await import('./containers.ts')).list({ home, env }, options));
  tagyard
    .command('create')
    .description('create a container')
    .argument('<name>', 'as people call it')
    .requiredOption(
      '--domain <domain=id...>',
      'a domain with its web tag id, for example shop.example=GTM-ABC1234; repeat it for more',
    )
    .requiredOption(
      '--config <text>',
      'the container config that Tag Manager shows; - reads it from standard input',
    )
    .option('--client <id>', 'its client (default: yours, if you are a member of only one)')
    .option('--site-id <site>', 'the first label of its host names (default: made from the name)')
    .addOption(
      new Option('--consent <rule>', 'the rule of consent (docs/consent.md)').choices([
        'opt_out',
        'required',
      ]),
    )
    .option('--tls <mode>', 'where its certificates come from (docs/tls.md)')
    .option('--plan', 'show what would be committed, and create nothing')
    .option('--json', 'print the container as JSON')
    .action(async (name: string, options: CreateOptions) =>
      (await import('./containers.ts')).create({ home, env }, name, options),
    );
  tagyard
    .command('open')
    .description('open a container in the console, or the console, and print the address')
    .argument('[site]')
    .action(async (site: string | undefined) => (await import('./containers.ts')).open({ home, env }, site));
  tagyard
    .command('snippet')
    .description('show what to paste into the pages, and into the configuration of their own server')
    .argument('<site>')
    .addOption(new Option('--for <product>', 'only the configuration for this product').choices(PRODUCTS))
    .option('--domain <domain>', 'only this domain of the site')
    .option('--json', 'print it as JSON')
    .action(async (site: string, options: SnippetVerbOptions) =>
      (await import('./snippet.ts')).snippet({ home, env }, site, options),
    );
  tagyard
    .command('import')
    .description('import from a file')
    .command('containers')
    .description('create the missing clients and containers of a file; without --yes, only show them')
    .requiredOption('-f, --file <file>', 'YAML or JSON (docs/client.md)')
    .option('--yes', 'create them')
    .option('--json', 'print the outcome of each item as JSON')
    .action(async (options: ImportOptions) =>
      (await import('./import.ts')).importContainers({ home, env }, options),
    );
  tagyard
    .command('client')
    .description('manage clients and their members')
    .command('add')
    .description('add a client')
    .argument('<name>')
    .option('--member <subject:role>', 'a member; repeat the option for more', collect, [])
    .action(async (name: string, options: { member: readonly string[] }) => {
      const { addClient, parseMember } = await import('./client.ts');
      await addClient({ home, env }, name, options.member.map(parseMember));
    });
  tagyard.commandsGroup('See what is:');
  tagyard
    .command('status')
    .description(
      'show the condition of each site, and the reason; exit code 1 if something drifted or failed',
    )
    .argument('[site]', 'show one site with its resources')
    .option('--state <states>', 'only sites in these states, comma-separated')
    .option('--json', 'print it as JSON')
    .action(async (site: string | undefined, options: { json?: true; state?: string }) =>
      (await import('./sites.ts')).status({ home, env }, site, options),
    );
  tagyard
    .command('doctor')
    .description('report problems, their reasons and remedies; exit code 1 if there are any')
    .argument('[site]', 'verify one site from outside and on its host: names, certificates, loader, cookies')
    .option('--host', 'only the host, management and the workers, with what passed')
    .option('--json', 'print it as JSON')
    .action(async (site: string | undefined, options: { host?: true; json?: true }) => {
      if (options.host) return await (await import('./check.ts')).doctorHost({ home, env }, options);
      if (site === undefined) return await (await import('./doctor.ts')).doctor({ home, env }, options);
      await (await import('./doctor-site.ts')).doctorSite({ home, env }, site, options);
    });
  tagyard
    .command('logs')
    .description('show the requests to a site from the log of the edge')
    .argument('<site>')
    .option('--day <day>', 'a day (UTC), for example 2026-01-31; default: today')
    .option('--status <status>', 'only this status, for example 404 or 5xx')
    .option('-f, --follow', 'print requests as they arrive, until Ctrl-C (asks the management API)')
    .option('--since <time>', 'how far back, for example 90s, 2h or 7d (asks the management API)')
    .option(
      '--where <filter...>',
      'only requests with this route, status, cache, error, requestId, method or country, for example route=/boot; with probes=true also Tagyard’s own probes (asks the management API)',
    )
    .option(
      '--containers',
      'what the tag servers printed, instead of requests; --where takes q, requestId, level, stream, kind',
    )
    .option('--json', 'print the whole records as JSON, one per line')
    .action(async (site: string, options: LogsOptions) =>
      (await import('./logs.ts')).logs({ home, env }, site, options),
    );
  tagyard
    .command('history')
    .description('show the commits of a site')
    .argument('<site>')
    .option('--json', 'print them as JSON')
    .action(async (site: string, options: { json?: true }) =>
      (await import('./sites.ts')).history({ home, env }, site, options),
    );
  tagyard
    .command('diff')
    .description('show how the manifests differ from the applied ones; exit code 2 if they differ')
    .argument('[site]', 'show one site only')
    .option('--ref <ref>', 'a branch, tag or commit of the sites repository instead of the newest commit')
    .option('--json', 'print both texts as JSON')
    .action(async (site: string | undefined, options: { ref?: string; json?: true }) =>
      (await import('./diff.ts')).diff({ home, env }, site, options),
    );
  tagyard
    .command('plan')
    .description('show what would change; exit code 2 if anything would')
    .option('--ref <ref>', 'a branch, tag or commit of the sites repository instead of the newest commit')
    .option('--json', 'print the plan as JSON')
    .action(async (options: { ref?: string; json?: true }) =>
      (await import('./sites.ts')).plan({ home, env }, options),
    );
  tagyard
    .command('events')
    .description(
      'show what became of sites: what broke, when, why, and how long it lasted (asks the management API)',
    )
    .argument('[site]', 'show one site only')
    .option('--since <time>', 'how far back, for example 90s, 2h or 7d', '7d')
    .addOption(
      new Option('--kind <kind>', 'only events of this kind').choices([
        ...['status', 'state', 'changed', 'manifest_refused', 'host', 'proof', 'policy'],
      ]),
    )
    .option('--json', 'print them as JSON')
    .action(async (site: string | undefined, options: EventsOptions) =>
      (await import('./events.ts')).events({ home, env }, site, options),
    );
  tagyard.commandsGroup('Change what is:');
  tagyard
    .command('apply')
    .description('apply the newest revision now and wait until it is applied')
    .option('--checksum <checksum>', 'apply only if the plan still has this checksum')
    .option('--wait <seconds>', 'how long to wait until all operations have finished', '1800')
    .option('--json', 'print the outcome as JSON')
    .action(async (options: { checksum?: string; wait: string; json?: true }) =>
      (await import('./apply.ts')).apply({ home, env }, options),
    );
  tagyard
    .command('approve')
    .description('allow the guarded changes of a plan')
    .argument('<checksum>', 'the checksum that the plan shows')
    .action(async (checksum: string) => (await import('./sites.ts')).approve({ home, env }, checksum));
  tagyard
    .command('revert')
    .description('undo a commit of a site, also a removal, with a new commit; asks before it removes a site')
    .argument('<site>')
    .argument(
      '[revision]',
      'the commit to undo, with all later commits of the site (default: only the newest)',
    )
    .option('--reason <text>', 'the reason to record in the commit')
    .option('--json', 'print the commit as JSON')
    .option('--yes', 'do not ask before a revert that removes the site')
    .action(
      async (
        site: string,
        revision: string | undefined,
        options: { reason?: string; json?: true; yes?: true },
      ) => (await import('./edits.ts')).revert({ home, env }, site, revision, options),
    );
  tagyard
    .command('suspend')
    .description('stop changes of a site; its drift is still reported')
    .argument('<site>')
    .option(
      '--stop-serving',
      'stop the serving instead: the edge answers nothing of the site until it is resumed',
    )
    .option('--reason <text>', 'the reason to record in the commit')
    .option('--json', 'print the commit as JSON')
    .action(async (site: string, options: { stopServing?: true; reason?: string; json?: true }) =>
      (await import('./edits.ts')).suspend({ home, env }, site, options),
    );
  tagyard
    .command('resume')
    .description('resume the changes of a suspended site, and the serving of one that was stopped')
    .argument('<site>')
    .option('--reason <text>', 'the reason to record in the commit')
    .option('--json', 'print the commit as JSON')
    .action(async (site: string, options: { reason?: string; json?: true }) =>
      (await import('./edits.ts')).resume({ home, env }, site, options),
    );
  tagyard
    .command('image')
    .description('change the image of sites, one first, then the rest; a site that fails is reverted')
    .argument('<image>', 'the pinned image as in a manifest: name@sha256:…, or sha256:<id> for a local image')
    .option(
      '--sites <sites>',
      'only these sites, comma-separated and in this order (default: all sites of the host)',
    )
    .option('--at-once <number>', 'how many sites at once after the first one', '5')
    .option('--watch <seconds>', 'how many seconds each site must stay ready with the image', '60')
    .option('--max-failures <number>', 'stop if more sites than this fail', '1')
    .option('--reason <text>', 'the reason to record in the commits')
    .option('--json', 'print the outcome as JSON')
    .action(async (wanted: string, options: ImageOptions) =>
      (await import('./image.ts')).image({ home, env }, wanted, options),
    );
  tagyard
    .command('prune')
    .description('delete the files of removed sites from the repository')
    .option('--days <days>', 'only sites that were removed at least this many days ago', '30')
    .option('--reason <text>', 'the reason to record in the commits')
    .option('--json', 'print the sites as JSON')
    .action(async (options: { days: string; reason?: string; json?: true }) =>
      (await import('./edits.ts')).prune({ home, env }, options),
    );
  tagyard.commandsGroup('Host:');
  tagyard
    .command('check')
    .description(
      'check the settings of a host and of management before or beside their start (docs/runbooks.md); exit code 1 if there is something to fix',
    )
    .option('--env-file <file>', 'a file of settings instead of .env; repeat it for each part', collect, [])
    .option('--json', 'print it as JSON')
    .action(async (options: CheckOptions) =>
      (await import('./check.ts')).checkInstallation({ home, env }, options),
    );
  tagyard
    .command('validate')
    .description('check manifests without a provisioner; exit code 1 if one is invalid')
    .argument('<files...>')
    .option('--json', 'print the problems as JSON')
    .action(async (files: string[], options: { json?: true }) =>
      (await import('./validate.ts')).validate(files, options),
    );
  tagyard
    .command('backup')
    .description(
      'write database, keys, settings, commits and certificates of this machine into one encrypted file',
    )
    .argument('<file>', 'a new file')
    .option('--recipient <age1…>', 'the age recipient that can open it (default: BACKUP_RECIPIENT)')
    .option(
      '--settings <files...>',
      'the files with the settings of this machine’s daemons (default: the embedded instance, else .env)',
    )
    .action(async (file: string, options: BackupOptions) =>
      (await import('./backup.ts')).backup({ home, env }, file, options),
    );
  tagyard
    .command('restore')
    .description('put back what a backup has, onto a machine that has nothing of it yet')
    .argument('<file>', 'a backup')
    .requiredOption('--identity <file>', 'the key file of the recipient, in the format of age-keygen')
    .action(async (file: string, options: RestoreOptions) =>
      (await import('./restore.ts')).restore({ home, env }, file, options),
    );
  tagyard
    .command('keys')
    .description('replace keys and secrets')
    .command('rotate')
    .description('replace a key; the old one stays valid until every daemon has the new one (docs/keys.md)')
    .addArgument(
      new Argument('<key>', 'age: the manifests’ secrets; infra: INFRA_SECRET; hop: HOP_SECRET').choices([
        ...['age', 'infra', 'hop'],
      ]),
    )
    .option(
      '--settings <files...>',
      'the files with the daemons’ settings (default: the embedded instance, else .env)',
    )
    .option('--finish', 'the daemons have the new key: nothing shall need the old one any more')
    .action(async (key: Key, options: RotateOptions) =>
      (await import('./keys.ts')).rotate({ home, env }, key, options),
    );
  tagyard.commandsGroup('Tools:');
  tagyard
    .command('ci')
    .description(
      'print a report on a pull request as Markdown (docs/gitops.md); exit code 1 if a manifest is invalid, 2 if something would change',
    )
    .argument('[folder]', 'a checkout of the sites repository', '.')
    .option('--ref <ref>', 'the ref of the checkout, to plan it, too; needs only INFRA_READ_TOKEN')
    .action(async (folder: string, options: CiOptions) =>
      (await import('./ci.ts')).ci({ home, env }, folder, options),
    );
  tagyard
    .command('mcp')
    .description(
      'serve the management API as tools of the Model Context Protocol, on standard input and output',
    )
    .option('--allow-changes', 'also offer the tools that change something')
    .option('--as <subject>', 'act as this subject (embedded instance only; default: the demo’s owner)')
    .action(async (options: McpVerbOptions) => (await import('./mcp.ts')).mcp({ home, env }, options));
  tagyard
    .command('plugin')
    .description('write a new plugin with its test into the current folder, the plugin’s own repository')
    .argument('<name>', 'snake_case, for example bot_score')
    .action(async (name: string) => (await import('./plugin.ts')).newPlugin(name));
  tagyard
    .command('completion')
    .description('print the script that completes verbs, options and sites in a shell')
    .addArgument(new Argument('<shell>').choices(SHELLS))
    .action((shell: ShellName) => void process.stdout.write(completionScript(tagyard, shell)));
  return tagyard;
}

function collect(text: string, before: readonly string[]): string[] {
  return [...before, text];
}

const EXAMPLES = `
Examples:
  tagyard up                                        a whole instance on this machine
  tagyard create "Acme Shop" --domain acme.example=GTM-ABC1234 --config - < config.txt
  tagyard list --state failing,waits_for_dns        what needs something
  tagyard doctor acme-shop                          why, and what to do
  tagyard revert acme-shop                          undo the last commit of a site
  source <(tagyard completion bash)                 complete verbs, options and sites

Exit codes: 0 done, 1 failed or something is wrong, 2 something would change (plan, diff, ci), 64 wrong usage.`;
