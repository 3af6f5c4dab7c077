import { resolve } from 'node:path';
import { Command, Option } from 'commander';
import { PRODUCTS } from '../../management/snippets/index.ts';
import { apply } from './apply.ts';
import { addClient, type MemberArgument, parseMember } from './client.ts';
import { diff } from './diff.ts';
import { doctor } from './doctor.ts';
import { doctorSite } from './doctor-site.ts';
import { prune, resume, revert, suspend } from './edits.ts';
import { type ImageOptions, image } from './image.ts';
import { type LogsOptions, logs } from './logs.ts';
import { approve, history, plan, status } from './sites.ts';
import { type SnippetVerbOptions, snippet } from './snippet.ts';
import { token } from './token.ts';
import { runInstance } from './up/up.ts';
import { validate } from './validate.ts';

/** The verbs of `tagyard` with their options. */
export function program(env: NodeJS.ProcessEnv): Command {
  const home = resolve(env.TAGYARD_HOME || '.tagyard');
  const tagyard = new Command('tagyard')
    .description(
      'Server-side tag containers for many clients, on your own hosts, with git as the desired state.',
    )
    .showHelpAfterError();

  tagyard
    .command('up')
    .description('run a whole instance on this machine until Ctrl-C')
    .action(() => runInstance(home, env));
  tagyard
    .command('plan')
    .description('show what would change; exit code 2 if anything would')
    .option('--ref <ref>', 'a branch, tag or commit of the sites repository instead of the newest commit')
    .option('--json', 'print the plan as JSON')
    .action((options: { ref?: string; json?: true }) => plan({ home, env }, options));
  tagyard
    .command('status')
    .description(
      'show the condition of each site, and the reason; exit code 1 if something drifted or failed',
    )
    .argument('[site]', 'show one site with its resources')
    .option('--json', 'print it as JSON')
    .action((site: string | undefined, options: { json?: true }) => status({ home, env }, site, options));
  tagyard
    .command('history')
    .description('show the commits of a site')
    .argument('<site>')
    .option('--json', 'print them as JSON')
    .action((site: string, options: { json?: true }) => history({ home, env }, site, options));
  tagyard
    .command('approve')
    .description('allow the blocked changes of a plan')
    .argument('<checksum>', 'the checksum that the plan shows')
    .action((checksum: string) => approve({ home, env }, checksum));
  tagyard
    .command('logs')
    .description('show the requests to a site from the log of the edge')
    .argument('<site>')
    .option('--day <day>', 'a day (UTC), for example 2026-01-31; default: today')
    .option('--status <status>', 'only this status, for example 404 or 5xx')
    .option('--json', 'print the whole records as JSON, one per line')
    .action((site: string, options: LogsOptions) => logs({ home, env }, site, options));
  tagyard
    .command('apply')
    .description('apply the newest revision now and wait until it is applied')
    .option('--checksum <checksum>', 'apply only if the plan still has this checksum')
    .option('--wait <seconds>', 'how long to wait until all operations have finished', '1800')
    .option('--json', 'print the outcome as JSON')
    .action((options: { checksum?: string; wait: string; json?: true }) => apply({ home, env }, options));
  tagyard
    .command('diff')
    .description('show how the manifests differ from the applied ones; exit code 2 if they differ')
    .argument('[site]', 'show one site only')
    .option('--ref <ref>', 'a branch, tag or commit of the sites repository instead of the newest commit')
    .option('--json', 'print both texts as JSON')
    .action((site: string | undefined, options: { ref?: string; json?: true }) =>
      diff({ home, env }, site, options),
    );
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
      (site: string, revision: string | undefined, options: { reason?: string; json?: true; yes?: true }) =>
        revert({ home, env }, site, revision, options),
    );
  for (const [verb, act, what] of [
    ['suspend', suspend, 'stop changes of a site; its drift is still reported'],
    ['resume', resume, 'resume the changes of a suspended site'],
  ] as const) {
    tagyard
      .command(verb)
      .description(what)
      .argument('<site>')
      .option('--reason <text>', 'the reason to record in the commit')
      .option('--json', 'print the commit as JSON')
      .action((site: string, options: { reason?: string; json?: true }) => act({ home, env }, site, options));
  }
  tagyard
    .command('image')
    .description('change the image of sites, one first, then the rest; a site that fails is reverted')
    .argument('<image>', 'the pinned image as in a manifest: name@sha256:…, or sha256:<id> for a local image')
    .option(
      '--sites <sites>',
      'only these sites, comma-separated and in this order (default: all sites of the host)',
    )
    .option('--at-once <number>', 'how many sites at once after the first one', '5')
    .option('--watch <seconds>', 'how many seconds each site must be ready with the image', '60')
    .option('--max-failures <number>', 'stop if more sites than this fail', '1')
    .option('--reason <text>', 'the reason to record in the commits')
    .option('--json', 'print the outcome as JSON')
    .action((wanted: string, options: ImageOptions) => image({ home, env }, wanted, options));
  tagyard
    .command('prune')
    .description('delete the files of removed sites from the repository')
    .option('--days <days>', 'only sites that were removed at least this many days ago', '30')
    .option('--reason <text>', 'the reason to record in the commits')
    .option('--json', 'print the sites as JSON')
    .action((options: { days: string; reason?: string; json?: true }) => prune({ home, env }, options));
  tagyard
    .command('validate')
    .description('check manifests without a provisioner; exit code 1 if one is invalid')
    .argument('<files...>')
    .option('--json', 'print the problems as JSON')
    .action((files: string[], options: { json?: true }) => validate(files, options));
  tagyard
    .command('doctor')
    .description('report problems, their reasons and remedies; exit code 1 if there are any')
    .argument('[site]', 'verify one site from outside and on its host: names, certificates, loader, cookies')
    .option('--json', 'print it as JSON')
    .action((site: string | undefined, options: { json?: true }) =>
      site === undefined ? doctor({ home, env }, options) : doctorSite({ home, env }, site, options),
    );
  tagyard
    .command('snippet')
    .description('show what to paste into the pages, and into the configuration of their own server')
    .argument('<site>')
    .addOption(new Option('--for <product>', 'only the configuration for this product').choices(PRODUCTS))
    .option('--domain <domain>', 'only this domain of the site')
    .option('--json', 'print it as JSON')
    .action((site: string, options: SnippetVerbOptions) => snippet({ home, env }, site, options));
  tagyard
    .command('token')
    .description('mint a development JWT (embedded instance only)')
    .requiredOption('--client <id>', 'the client that the subject is a member of')
    .option('--role <role>', 'the role of the subject in that client', 'owner')
    .action((options: { client: string; role: string }) => token({ home, env }, options));
  tagyard
    .command('client')
    .description('manage clients and their members')
    .command('add')
    .description('add a client')
    .argument('<name>')
    .option('--member <subject:role>', 'a member; repeat the option for more', collectMember, [])
    .action((name: string, options: { member: readonly MemberArgument[] }) =>
      addClient({ home, env }, name, options.member),
    );
  return tagyard;
}

function collectMember(text: string, before: readonly MemberArgument[]): MemberArgument[] {
  return [...before, parseMember(text)];
}
