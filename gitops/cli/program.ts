import { resolve } from 'node:path';
import { Command } from 'commander';
import { apply } from './apply.ts';
import { addClient, type MemberWish, parseMember } from './client.ts';
import { diff } from './diff.ts';
import { doctor } from './doctor.ts';
import { doctorSite } from './doctor-site.ts';
import { prune, resume, revert, suspend } from './edits.ts';
import { type ImageOptions, image } from './image.ts';
import { type LogsOptions, logs } from './logs.ts';
import { approve, history, plan, status } from './sites.ts';
import { token } from './token.ts';
import { up } from './up/up.ts';
import { validate } from './validate.ts';

/** Every verb of `tagyard`; each one's work is in a file of its own. */
export function program(env: NodeJS.ProcessEnv): Command {
  const home = resolve(env.TAGYARD_HOME || '.tagyard');
  const tagyard = new Command('tagyard')
    .description(
      'Server-side tag containers for many clients, on hosts of your own, with git as the desired state.',
    )
    .showHelpAfterError();

  tagyard
    .command('up')
    .description('run a whole instance on this machine until Ctrl-C')
    .action(() => up(home, env));
  tagyard
    .command('plan')
    .description('show what would change; exit code 2 where something would')
    .option('--ref <ref>', 'a branch, tag or commit of the sites repository instead of its newest')
    .option('--json', 'print the plan as JSON')
    .action((options: { ref?: string; json?: true }) => plan({ home, env }, options));
  tagyard
    .command('status')
    .description('show where each site stands')
    .argument('[site]', 'one site with its resources')
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
    .description('let a guarded plan through')
    .argument('<checksum>', 'as the plan shows it')
    .action((checksum: string) => approve({ home, env }, checksum));
  tagyard
    .command('logs')
    .description('show the requests of a site, as the edge wrote them down')
    .argument('<site>')
    .option('--day <day>', 'a day (UTC), as 2026-01-31; default: today')
    .option('--status <status>', 'only that status, as 404 or 5xx')
    .option('--json', 'print the records as they are, one a line')
    .action((site: string, options: LogsOptions) => logs({ home, env }, site, options));
  tagyard
    .command('apply')
    .description('apply the newest revision now and wait for its end')
    .option('--checksum <checksum>', 'only if the plan is still this one')
    .option('--json', 'print the outcome as JSON')
    .action((options: { checksum?: string; json?: true }) => apply({ home, env }, options));
  tagyard
    .command('diff')
    .description('show how the manifests differ from what is applied; exit code 2 where they do')
    .argument('[site]', 'one site only')
    .option('--ref <ref>', 'a branch, tag or commit of the sites repository instead of its newest')
    .option('--json', 'print both texts as JSON')
    .action((site: string | undefined, options: { ref?: string; json?: true }) =>
      diff({ home, env }, site, options),
    );
  tagyard
    .command('revert')
    .description('undo a commit of a site’s file by another commit; of a removal, too')
    .argument('<site>')
    .argument('[revision]', 'the commit to undo, with what came after it (default: the site’s newest)')
    .option('--reason <text>', 'stands in the commit')
    .option('--json', 'print the commit as JSON')
    .action((site: string, revision: string | undefined, options: { reason?: string; json?: true }) =>
      revert({ home, env }, site, revision, options),
    );
  for (const [verb, act, what] of [
    ['suspend', suspend, 'stop changing a site; its drift is still reported'],
    ['resume', resume, 'go on with a suspended site'],
  ] as const) {
    tagyard
      .command(verb)
      .description(what)
      .argument('<site>')
      .option('--reason <text>', 'stands in the commit')
      .option('--json', 'print the commit as JSON')
      .action((site: string, options: { reason?: string; json?: true }) => act({ home, env }, site, options));
  }
  tagyard
    .command('image')
    .description('bring sites to an image: one first and watched, then the rest; one that fails goes back')
    .argument('<image>', 'pinned, as a manifest names it: name@sha256:…, or sha256:<id> of a local one')
    .option('--sites <sites>', 'only these, comma-separated, the first one first (default: all of the host)')
    .option('--at-once <number>', 'how many at a time after the first', '5')
    .option('--watch <seconds>', 'how long each must be well before it counts', '60')
    .option('--max-failures <number>', 'how many may go back before the rest is left as it is', '1')
    .option('--reason <text>', 'stands in the commits')
    .option('--json', 'print the outcome as JSON')
    .action((wanted: string, options: ImageOptions) => image({ home, env }, wanted, options));
  tagyard
    .command('prune')
    .description('take the files of removed sites out of the repository')
    .option('--days <days>', 'of those that are gone for so long', '30')
    .option('--reason <text>', 'stands in the commits')
    .option('--json', 'print the sites as JSON')
    .action((options: { days: string; reason?: string; json?: true }) => prune({ home, env }, options));
  tagyard
    .command('validate')
    .description('check manifests without a provisioner; exit code 1 with any fault')
    .argument('<files...>')
    .option('--json', 'print the faults as JSON')
    .action((files: string[], options: { json?: true }) => validate(files, options));
  tagyard
    .command('doctor')
    .description('say why sites are not as they should be, and what to do; exit code 1 with any')
    .argument('[site]', 'check one site from outside and on its host: names, certificates, loader, cookies')
    .option('--json', 'print it as JSON')
    .action((site: string | undefined, options: { json?: true }) =>
      site === undefined ? doctor({ home, env }, options) : doctorSite({ home, env }, site, options),
    );
  tagyard
    .command('token')
    .description('mint a development JWT (embedded instance only)')
    .requiredOption('--client <id>', 'the client that it acts for')
    .option('--role <role>', 'its role in that client', 'owner')
    .action((options: { client: string; role: string }) => token(home, options));
  tagyard
    .command('client')
    .description('clients and their members')
    .command('add')
    .description('add a client')
    .argument('<name>')
    .option('--member <subject:role>', 'a member, may be given again', collectMember, [])
    .action((name: string, options: { member: readonly MemberWish[] }) =>
      addClient({ home, env }, name, options.member),
    );
  return tagyard;
}

function collectMember(text: string, before: readonly MemberWish[]): MemberWish[] {
  return [...before, parseMember(text)];
}
