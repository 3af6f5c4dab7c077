import { eventually } from '../../support/eventually.ts';
import type { ConformEnv } from '../env.ts';
import { NotTried } from '../not-tried.ts';
import type { OpenTarget, Table } from '../table.ts';
import { containerBehaviours } from '../tag-server/index.ts';
import type { ContainerTarget, EndedRole, StartedRole, TagServerTarget } from '../tag-server/target.ts';
import { type Container, type DockerRun, openDockerRun, type Placement } from './docker-run.ts';
import { excuseFor } from './excuse.ts';
import { pairStarter } from './pair.ts';

type Config = TagServerTarget['config'];
type Env = Readonly<Record<string, string>>;

/** An image of the tag server, run by this machine's Docker. */
export function tagServerTable(reference: string, env: ConformEnv): Table<ContainerTarget> {
  return {
    name: 'tag server',
    behaviours: containerBehaviours,
    open: (signal) => openTagServer(reference, env, signal),
  };
}

/** An invented configuration. Only a stand-in starts with it, because it doesn't ask Google for the container. */
const MADE_UP: Config = { id: 'GTM-CONFORM', env: '1', auth: 'conformance' };
const PREVIEW = { RUN_AS_PREVIEW_SERVER: 'true' };
const START = { timeoutMs: 90_000, intervalMs: 250 };
async function openTagServer(
  reference: string,
  { CONFORM_CONTAINER_CONFIG: given }: ConformEnv,
  signal: AbortSignal,
): Promise<OpenTarget<ContainerTarget>> {
  const config = given === null ? MADE_UP : decode(given);
  const run = await openDockerRun(reference, signal);
  /** The address of a server that runs until the end, or the error of its start, reported by each row that uses it. */
  const serve = async (env: Env): Promise<string | Error> => {
    try {
      const role = await start(run, env);
      if (role.listens) return role.url;
      const excuse = excuseFor(role.output, { isMadeUp: given === null });
      if (excuse !== null) return new NotTried(excuse);
      return new Error(`the server ended with exit code ${role.code}:\n${role.output}`);
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  };
  const own = { CONTAINER_CONFIG: given ?? encode(MADE_UP) };
  const [preview, tagging] = [await serve({ ...own, ...PREVIEW }), await serve(own)];
  const pairs = pairStarter({
    gateway: run.gateway,
    preview: () => addressOf(preview),
    start: async (env, placement) => {
      // If the server of the other rows did not start, this one can't either, for the same reason.
      addressOf(tagging);
      return await start(run, { ...own, ...env }, placement);
    },
  });
  return {
    target: {
      config,
      get preview() {
        return addressOf(preview);
      },
      get tagging() {
        return addressOf(tagging);
      },
      startWith: (env) => start(run, env),
      startPair: pairs.start,
    },
    subject: run.subject,
    evidence: () => run.logs(),
    async close() {
      const { started, remains } = await run.removeAll();
      await pairs.close();
      return { costs: [`${started} containers`], remains };
    },
  };
}

function addressOf(served: string | Error): string {
  if (typeof served === 'string') return served;
  throw served;
}

async function start(run: DockerRun, env: Env, placement?: Placement): Promise<StartedRole | EndedRole> {
  const container = await run.start(env, placement);
  const code = await eventually(() => endOrAnswer(container), START);
  if (code === null) return { listens: true, url: container.url, stop: container.remove };
  const output = await container.log();
  await container.remove();
  const excuse = excuseFor(output, { isMadeUp: false });
  if (excuse !== null) throw new NotTried(excuse);
  return { listens: false, code, output };
}

/** The exit code, or `null` if it answers. Throws if it runs and doesn't answer yet. */
async function endOrAnswer({ url, exitCode }: Container): Promise<number | null> {
  const code = await exitCode();
  if (code !== null) return code;
  const answer = await fetch(`${url}/healthz`);
  await answer.arrayBuffer();
  return null;
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
