import type Docker from 'dockerode';
import { z } from 'zod';
import { RetryableError, TerminalError } from '../../base/errors.ts';
import { freePort } from '../../base/free-port.ts';

/** The label with the ownership mark of a container or network. */
export const MARK_LABEL = 'tagyard.mark';

/** Docker refused the call, or there is no such thing. */
export class DockerRefusal extends TerminalError {
  override name = 'DockerRefusal';
  readonly status: number;
  constructor(message: string, status: number, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

/** Another operation on the same thing is under way, or has its name. */
export class DockerConflict extends RetryableError {
  override name = 'DockerConflict';
}

/** dockerode's error; `json` is the engine's message, or whatever else it sent. */
const engineError = z.object({ statusCode: z.number(), reason: z.string().optional(), json: z.unknown() });
const engineMessage = z.object({ message: z.string() });

/**
 * Awaits a call of dockerode and throws typed errors: `DockerConflict` for 409, `RetryableError` for 429, 5xx (a port is
 * still in use, for example) and an unreachable socket; `DockerRefusal` for other statuses.
 */
export async function callDocker<T>(doing: string, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (cause) {
    const parsed = engineError.safeParse(cause);
    if (!parsed.success) {
      const message = cause instanceof Error ? cause.message || cause.name : String(cause);
      throw new RetryableError(`Docker did not answer while ${doing}: ${message}`, { cause });
    }
    const { statusCode, reason, json } = parsed.data;
    const said = engineMessage.safeParse(json).data?.message ?? reason ?? 'no reason given';
    const message = `Docker answered ${statusCode} while ${doing}: ${said}`;
    if (statusCode === 409) throw new DockerConflict(message, { cause });
    if (statusCode === 429 || statusCode >= 500) {
      throw new RetryableError(message, { cause });
    }
    throw new DockerRefusal(message, statusCode, { cause });
  }
}

/** An engine that takes longer than this for one call is assumed to hang. */
const CALL_TIMEOUT_MS = 60_000;

/** The signal for one call: aborted with `signal`, or when the engine is assumed to hang. */
export function limited(signal?: AbortSignal): AbortSignal {
  const timeout = AbortSignal.timeout(CALL_TIMEOUT_MS);
  return signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
}

/** `null` if the thing doesn't exist (404) or is already in the requested state (304). */
export async function unlessGone<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof DockerRefusal && (error.status === 404 || error.status === 304)) return null;
    throw error;
  }
}

/** The engine at DOCKER_HOST, else at the local socket. dockerode is loaded here, because only some hosts need it. */
export async function dockerEngine(options: Docker.DockerOptions = {}): Promise<Docker> {
  const { default: Engine } = await import('dockerode');
  return new Engine(options);
}

/** A usable engine answers in far less time. */
const PROBE_MS = 1_000;

type Usable = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** Set for a remote engine only. */
const modem = z.object({ host: z.string().optional() });
const remoteHost = (docker: Docker) => modem.parse(docker.modem).host;
const engineInfo = z.object({ DockerRootDir: z.string() });

/**
 * Checks that containers can run here: a Linux engine behind a local socket, with its default bridge network up. A
 * remote engine can't be used, because containers are bound to this host's loopback addresses. Takes at most two
 * seconds.
 */
export async function isDockerUsable(options: Docker.DockerOptions = {}): Promise<Usable> {
  try {
    const docker = await dockerEngine({ ...options, timeout: PROBE_MS });
    const host = remoteHost(docker);
    if (host !== undefined) return { ok: false, reason: `the engine is remote, at ${host}` };
    const { Os } = await callDocker('asking for its version', docker.version());
    if (Os !== 'linux') return { ok: false, reason: `the engine runs ${Os} containers` };
    const gateway = await dockerBridgeGateway(docker);
    return gateway === null ? { ok: false, reason: 'its default bridge network is not up' } : { ok: true };
  } catch (error) {
    return { ok: false, reason: error instanceof Error ? error.message : String(error) };
  }
}

/** The folder of a local engine's images and containers; `null` if the engine is remote. */
export async function dockerDataRoot(given?: Docker): Promise<string | null> {
  const docker = given ?? (await dockerEngine());
  if (remoteHost(docker) !== undefined) return null;
  const info: unknown = await callDocker('asking for its data root', docker.info());
  return engineInfo.parse(info).DockerRootDir;
}

/**
 * This host's address on Docker's default bridge, which `host-gateway` resolves to: containers can reach a proxy that
 * listens on it. `null` if the network has none, or it isn't an address of this machine.
 */
export async function dockerBridgeGateway(given?: Docker, signal?: AbortSignal): Promise<string | null> {
  const docker = given ?? (await dockerEngine());
  const options = { filters: { name: ['bridge'], driver: ['bridge'] }, abortSignal: limited(signal) };
  const networks = await callDocker('listing its bridge network', docker.listNetworks(options));
  const [range] = networks.find(({ Name }) => Name === 'bridge')?.IPAM?.Config ?? [];
  const address = range?.Gateway ?? firstAddress(range?.Subnet);
  return address !== null && (await isOurs(address)) ? address : null;
}

/** The bridge has the first address of the network, unless a `Gateway` is configured. */
function firstAddress(subnet: string | undefined): string | null {
  const parts = /^(\d+\.\d+\.\d+)\.(\d+)\/\d+$/.exec(subnet ?? '');
  return parts === null ? null : `${parts[1]}.${Number(parts[2]) + 1}`;
}

/** Binds the address: Node's list of interfaces lacks a bridge without containers, since that has no carrier. */
async function isOurs(address: string): Promise<boolean> {
  try {
    return (await freePort(address, 0)) !== null;
  } catch {
    return false; // EADDRNOTAVAIL, or the gateway is not an address
  }
}
