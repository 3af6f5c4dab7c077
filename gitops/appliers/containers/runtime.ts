import type { ContainerSpec } from '../../manifest/containers.ts';

/** A container or process, as its runtime finds it. */
export interface ContainerInstance {
  /** Of this very instance: another one of the same name has another. */
  readonly id: string;
  readonly name: string;
  /** The ownership mark, see `formatMark`; `null`: it bears none. */
  readonly mark: string | null;
  readonly running: boolean;
  /** It ended because it was told to, and doesn't start again by itself. */
  readonly stopped: boolean;
  /** Where the host reaches it, while it runs. */
  readonly endpoint: Endpoint | null;
}

export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

export interface Launch {
  readonly name: string;
  readonly mark: string;
  readonly spec: ContainerSpec;
}

/** Where a spec's container itself answers. */
export function boundEndpoint({ boundAddress, port }: ContainerSpec): Endpoint {
  return { address: boundAddress, port };
}

/**
 * What runs containers, and no more: it knows nothing of desired state, health or when to give up. Calls throw
 * `RetryableError` or `TerminalError`.
 */
export interface Runtime {
  /** All that bear a mark, whoever's it is, running or not, and whatever has one of `names`. */
  list(names: ReadonlySet<string>, signal: AbortSignal): Promise<readonly ContainerInstance[]>;
  /** Makes and starts it, and answers its id; nothing is left of one that doesn't start. Restarts it when it dies later. */
  start(launch: Launch, signal: AbortSignal): Promise<string>;
  /** Ends it with a grace and keeps it, `stopped`. */
  stop(id: string, signal: AbortSignal): Promise<void>;
  /** Starts one that was stopped, as it was; one that runs is left as it is. */
  resume(id: string, signal: AbortSignal): Promise<void>;
  /** Why it isn't running (`exit code 1`); `null` while it is. */
  death(id: string, signal: AbortSignal): Promise<string | null>;
  /** The last lines that it wrote, oldest first; secrets may be in them. */
  lastLines(id: string, signal: AbortSignal): Promise<readonly string[]>;
  /** Stops it with a grace and removes it; one that is gone already is no error. */
  remove(id: string, signal: AbortSignal): Promise<void>;
  /** Names of those that died, vanished or turned unhealthy, as it happens; empty where nobody knows who. */
  losses(signal: AbortSignal): AsyncIterable<string>;
  close(): Promise<void>;
}
