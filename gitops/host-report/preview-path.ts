import http from 'node:http';
import tls from 'node:tls';
import { withinTime } from '../../base/time-limit.ts';
import {
  type ContainerSettings,
  type ContainerSpec,
  containerSpecs,
  type LoadedManifest,
} from '../../sites/manifest/containers.ts';
import { RUNBOOKS } from '../report/runbooks.ts';

/** Whether the processing servers of a site reach its preview server, which Tag Manager's previews need. */
interface PreviewPath {
  /** `null`: they do. */
  readonly problem: string | null;
  /** What to do about the problem. */
  readonly fix: string | null;
}

export interface PreviewPathDeps {
  /** The settings from which the containers are created. */
  readonly containerSettings: ContainerSettings;
  /** This host's address in the containers' hosts file; `null`: they use the host's own network, or there is none. */
  readonly gateway: () => Promise<string | null>;
}

/**
 * Processing servers hand paths under `/gtm/` to the preview server. Only the latter answers an unknown path with
 * 404: the processing server answers 500 if the latter is unreachable, 400 without PREVIEW_SERVER_URL (docs/facts.md,
 * Preview server).
 */
const UNDER_GTM = '/gtm/tagyard-verification';
/** The part of the time limit for explaining a failure, which takes a call of Docker and a connection to this host. */
const EXPLAINING = 1 / 3;

/**
 * Asks each processing server for a path of the preview server: a request through the container's own network. Takes at
 * most `timeoutMs`.
 */
export async function checkPreviewPath(
  manifest: LoadedManifest,
  deps: PreviewPathDeps,
  timeoutMs: number,
): Promise<PreviewPath> {
  // Timers take whole milliseconds.
  const explainMs = Math.floor(timeoutMs * EXPLAINING);
  const specs = containerSpecs(manifest, deps.containerSettings);
  const onDemand = specs.some((spec) => spec.onDemand);
  const problems = await Promise.all(
    specs
      .filter(({ role }) => role === 'processing')
      .map(async (spec) => {
        const answer = await ask(spec, timeoutMs - explainMs);
        return answer === 404 ? null : { spec, answer };
      }),
  );
  const first = problems.find((problem) => problem !== null);
  if (first === undefined) return { problem: null, fix: null };
  return await explain(first, onDemand, { ...deps, timeoutMs: explainMs });
}

/** The status, or why there is none. */
async function ask({ address, port }: ContainerSpec, timeoutMs: number): Promise<number | Error> {
  const { promise, resolve } = Promise.withResolvers<number | Error>();
  const options = { host: address, port, path: UNDER_GTM, agent: false };
  const request = http.get({ ...options, signal: AbortSignal.timeout(Math.ceil(timeoutMs)) }, (response) => {
    const { statusCode = 0 } = response; // 0 never occurs: an answer without a status is a parse error
    resolve(statusCode);
    response.destroy();
  });
  request.once('error', resolve);
  return await promise;
}

interface Failure {
  readonly spec: ContainerSpec;
  readonly answer: number | Error;
}

interface Explaining extends PreviewPathDeps {
  readonly timeoutMs: number;
}

async function explain({ spec, answer }: Failure, onDemand: boolean, deps: Explaining) {
  const name = `processing server ${spec.replica}`;
  const isLate = answer instanceof Error && /^(?:Abort|Timeout)Error$/.test(answer.name);
  if (answer instanceof Error && !isLate) {
    return {
      problem: `${name} ${isParseError(answer) ? 'answers, but not by HTTP' : 'doesn’t answer'}: ${answer.message}`,
      fix: 'See tagyard status for its container.',
    };
  }
  if (isLate && onDemand) {
    return {
      problem: `the preview server, which runs on demand, didn’t answer ${name} in time`,
      fix: 'Run the check again: the first request has started the preview server.',
    };
  }
  if (answer === 502 || answer === 504) {
    return {
      problem: `${name} reaches the proxy, but the preview server doesn’t answer`,
      fix: 'See tagyard status for the preview container.',
    };
  }
  if (answer === 400) {
    return { problem: `${name} runs without PREVIEW_SERVER_URL`, fix: 'Run tagyard apply.' };
  }
  const said = isLate ? 'no answer in time' : `status ${String(answer)}`;
  return {
    problem: `${name} doesn’t reach the preview server as ${spec.previewHost} (${said})`,
    fix: await withinTime(deps.timeoutMs, () => remedy(spec.previewHost, deps)).catch(
      () => 'Check that Docker answers, and run the check again.',
    ),
  };
}

/** An answer without a status, for example. */
function isParseError(error: Error): boolean {
  return 'code' in error && typeof error.code === 'string' && error.code.startsWith('HPE_');
}

/** The remedy, which depends on how far this host itself gets when it connects to the preview server. */
async function remedy(
  name: string,
  { gateway, containerSettings: { originPort: port, ownNetwork }, timeoutMs }: Explaining,
): Promise<string> {
  const host = await gateway();
  if (host === null) {
    if (ownNetwork) return RUNBOOKS.docker_bridge.fixes.none;
    return 'Make the name resolve to this host’s proxy, and make the containers trust its certificate: see CONTAINER_CA_FILE.';
  }
  const at = `${host}:${port}`;
  const reached = await handshake({ host, port, servername: name }, Math.floor(timeoutMs / 2));
  if (reached === 'refused') {
    return `The proxy doesn’t listen on ${at}: add ${host} to PROXY_LISTEN, or set it to 0.0.0.0.`;
  }
  if (reached === 'unknown name') {
    return `The proxy on ${at} doesn’t serve ${name}: run tagyard apply.`;
  }
  return `Allow connections from the sites’ bridges (tgy…) to ${at} in this host’s firewall. The provisioner’s rules allow them, but another table of nft or firewalld may still refuse them.`;
}

/** Whether the proxy accepts a connection and has a certificate for the name. The containers verify it themselves. */
async function handshake(
  target: Pick<tls.ConnectionOptions, 'host' | 'port' | 'servername'>,
  timeoutMs: number,
): Promise<'reached' | 'unknown name' | 'refused'> {
  const { promise, resolve } = Promise.withResolvers<'reached' | 'unknown name' | 'refused'>();
  let isConnected = false;
  const socket = tls.connect({ ...target, rejectUnauthorized: false }, () => resolve('reached'));
  socket.once('connect', () => {
    isConnected = true;
  });
  const fail = () => resolve(isConnected ? 'unknown name' : 'refused');
  socket.setTimeout(timeoutMs, fail);
  socket.once('error', fail).once('end', fail);
  return await promise.finally(() => socket.destroy());
}
