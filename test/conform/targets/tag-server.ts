import { eventually } from '../../support/eventually.ts';
import type { ConformEnv } from '../env.ts';
import { NotTried } from '../not-tried.ts';
import type { OpenTarget, Table } from '../table.ts';
import { tagServerBehaviours } from '../tag-server/index.ts';
import type { EndedRole, StartedRole, TagServerTarget } from '../tag-server/target.ts';
import { type Container, type DockerRun, openDockerRun } from './docker-run.ts';

type Config = TagServerTarget['config'];

/** An image of the tag server, run by this machine's Docker. */
export function tagServerTable(reference: string, env: ConformEnv): Table<TagServerTarget> {
  return {
    name: 'tag server',
    behaviours: tagServerBehaviours,
    open: (signal) => openTagServer(reference, env, signal),
  };
}

/** No container of Google's: only a stand-in, which is its own vendor, starts with it. */
const MADE_UP: Config = { id: 'GTM-CONFORM', env: '1', auth: 'conformance' };
const PREVIEW = { RUN_AS_PREVIEW_SERVER: 'true' };
const START = { timeoutMs: 90_000, intervalMs: 250 };
/** What Node says where a host can't be reached. */
const NETWORK =
  /\bE(?:NOTFOUND|AI_AGAIN|CONNREFUSED|CONNRESET|TIMEDOUT|NETUNREACH|HOSTUNREACH)\b|\bUND_ERR_CONNECT/;
const REFUSED = /server\.js[^\n]*\b4\d\d\b/;

async function openTagServer(
  reference: string,
  { CONFORM_CONTAINER_CONFIG: given }: ConformEnv,
  signal: AbortSignal,
): Promise<OpenTarget<TagServerTarget>> {
  const config = given === null ? MADE_UP : decode(given);
  const run = await openDockerRun(reference, signal);
  const close = async () => {
    const { started, remains } = await run.removeAll();
    return { costs: [`${started} containers`], remains };
  };
  try {
    const own = { CONTAINER_CONFIG: given ?? encode(MADE_UP) };
    const preview = urlOf(await start(run, { ...own, ...PREVIEW }));
    const tagging = await start(run, own)
      .then(urlOf)
      .catch((cause: unknown) => {
        const isMadeUp = given === null && cause instanceof Error && REFUSED.test(cause.message);
        const todo = 'set CONFORM_CONTAINER_CONFIG: Google refuses a made-up container (docs/conformance.md)';
        return isMadeUp ? new NotTried(todo, { cause }) : cause;
      });
    return {
      target: {
        config,
        preview,
        /** Throws where the processing role can't start. */
        get tagging() {
          if (typeof tagging === 'string') return tagging;
          throw tagging;
        },
        startWith: (env) => start(run, env),
      },
      subject: run.subject,
      evidence: () => run.logs(),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function start(
  run: DockerRun,
  env: Readonly<Record<string, string>>,
): Promise<StartedRole | EndedRole> {
  const container = await run.start(env);
  const code = await eventually(() => endOrAnswer(container), START);
  if (code === null) return { listens: true, url: container.url, stop: container.remove };
  const output = await container.log();
  await container.remove();
  const line = output.split('\n').find((one) => NETWORK.test(one));
  if (line !== undefined) throw new NotTried(`the container can't reach Google: ${line.trim()}`);
  return { listens: false, code, output };
}

/** The exit code; `null`: it answers. Throws while neither is so. */
async function endOrAnswer({ url, exitCode }: Container): Promise<number | null> {
  const code = await exitCode();
  if (code !== null) return code;
  const answer = await fetch(`${url}/healthz`);
  await answer.arrayBuffer();
  return null;
}

function urlOf(role: StartedRole | EndedRole): string {
  if (role.listens) return role.url;
  throw new Error(`the server ended with exit code ${role.code}:\n${role.output}`);
}

const encode = (config: Config): string =>
  Buffer.from(new URLSearchParams({ ...config }).toString()).toString('base64');

function decode(text: string): Config {
  const query = new URLSearchParams(Buffer.from(text, 'base64').toString());
  const [id, env, auth] = ['id', 'env', 'auth'].map((name) => query.get(name));
  if (!id || !env || !auth) {
    throw new NotTried('CONFORM_CONTAINER_CONFIG is not what Tag Manager shows: copy it again');
  }
  return { id, env, auth };
}
