import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { siblingUrl } from '../../base/runtime/sibling.ts';
import { summaryOfChecks } from '../report/log-findings.ts';
import type { PartCheck } from '../report/report.ts';
import { RUNBOOKS } from '../report/runbooks.ts';
import type { CliContext } from './instance/provisioner-client.ts';
import { hostAndSettings } from './live.ts';
import { renderCheck } from './output/checks.ts';
import { CliError } from './output/cli-error.ts';
import { type OutputOptions, print } from './output/print.ts';

export interface CheckOptions extends OutputOptions {
  /** Files of settings, each of one part of the installation. */
  readonly envFile: readonly string[];
}

/** A part is known by its settings: no other part has one of these. */
const PARTS = [
  { part: 'host', settings: ['AGE_IDENTITY_FILE', 'HOST_ADDRESS', 'CLOUDFLARE_ZONE_ID'], ask: checkHost },
  {
    part: 'management',
    settings: ['AUTH_JWKS_URL', 'AUTH_ISSUER', 'TAG_SERVER_IMAGE'],
    ask: checkManagement,
  },
] as const;

/**
 * `tagyard check`: checks the settings of the parts that they configure, whether or not these run. Exit code 1 if there
 * is something to fix.
 */
export async function checkInstallation(
  { env }: CliContext,
  { envFile, ...options }: CheckOptions,
): Promise<void> {
  const sources =
    envFile.length === 0 ? [env] : await Promise.all(envFile.map((file) => withFile(file, env)));
  // Management’s, which the host’s identity must belong to.
  const recipient = sources.find(({ AGE_RECIPIENT }) => AGE_RECIPIENT)?.AGE_RECIPIENT;
  const asked = sources.flatMap((source) =>
    PARTS.flatMap(({ part, settings, ask }) => {
      if (!settings.some((setting) => source[setting])) return [];
      return [ask(source, recipient).then((checks) => checks.map((check) => ({ part, ...check })))];
    }),
  );
  if (asked.length === 0) {
    throw new CliError(
      'there are no settings of a host or of management to check. Run it where .env is, or name a file by --env-file; for an instance of npm start, run tagyard doctor --host',
    );
  }
  report((await Promise.all(asked)).flat(), options);
}

/** `tagyard doctor --host`: the same of the running daemons, and of the workers. */
export async function doctorHost(context: CliContext, options: OutputOptions): Promise<void> {
  report(await hostAndSettings(context), options);
}

function report(checks: readonly (PartCheck & { readonly part?: string })[], options: OutputOptions): void {
  print(options, { checks }, () => {
    const parts = [...Map.groupBy(checks, ({ part }) => part)].map(
      ([part, own]) => `${part === undefined ? '' : `${part}\n`}${own.map(renderCheck).join('')}`,
    );
    return `${parts.join('')}${summaryOfChecks(checks)}\n`;
  });
  if (checks.some(({ status }) => status === 'failed')) process.exitCode = 1;
}

/** The environment with the settings of a file. Throws `CliError`. */
export async function withFile(file: string, env: NodeJS.ProcessEnv): Promise<NodeJS.ProcessEnv> {
  const text = await readFile(file, 'utf8').catch((cause: Error) => {
    throw new CliError(`${file} can't be read: ${cause.message}`, { cause });
  });
  return { ...env, ...parseEnv(text) };
}

async function checkHost(source: NodeJS.ProcessEnv, recipient: string | undefined): Promise<PartCheck[]> {
  const [{ readEnv }, { checkSettings }] = await Promise.all([
    import('../env.ts'),
    import('../host/preflight.ts'),
  ]);
  let env: ReturnType<typeof readEnv>;
  try {
    env = readEnv(source);
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    return [{ name: 'settings', status: 'failed', detail, fix: RUNBOOKS.settings.fixes.wrong }];
  }
  return await checkSettings(env, recipient);
}

/** Management's own code checks its settings, in a process of its own: this program loads none of it. */
async function checkManagement(source: NodeJS.ProcessEnv): Promise<PartCheck[]> {
  const script = fileURLToPath(siblingUrl('../../management/main', import.meta.url));
  const child = fork(script, ['check'], {
    env: source,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    execArgv: ['--disable-warning=ExperimentalWarning'],
  });
  let checks: PartCheck[] | null = null;
  child.on('message', (message: { checks: PartCheck[] }) => {
    checks = message.checks;
  });
  await once(child, 'exit');
  return (
    checks ?? [
      {
        name: 'settings',
        status: 'failed',
        detail: 'management’s check ended without an answer',
        fix: RUNBOOKS.settings.fixes.wrong,
      },
    ]
  );
}
