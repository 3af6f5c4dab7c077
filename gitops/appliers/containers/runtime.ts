import type { ContainerSpec } from '../../../sites/manifest/containers.ts';
import type { OutputLine, OutputPositions } from './output/output.ts';

/** A container or process as its runtime reports it. */
export interface ContainerInstance {
  /** Another instance of the same name has another id. */
  readonly id: string;
  readonly name: string;
  /** The ownership mark, see `formatMark`; `null` if it has none. */
  readonly mark: string | null;
  readonly running: boolean;
  /** It was stopped on request and isn't restarted. */
  readonly stopped: boolean;
  /** Its address on the host; `null` while it doesn't run. */
  readonly endpoint: Endpoint | null;
  /** Its slot, whether it runs or not; `null` if an older release created it. */
  readonly slot: Slot | null;
  /** It is in its own site's network and in no other. Also true without a mark, or if sites have no networks. */
  readonly inPlace: boolean;
  /** True if its hosts file gives the preview server an address that the host no longer has. */
  readonly isReaddressed: boolean;
}

/** The addresses that a container was created for. */
export type Slot = Pick<ContainerSpec, 'address' | 'boundAddress' | 'port'>;

export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

export interface Launch {
  readonly name: string;
  readonly mark: string;
  readonly spec: ContainerSpec;
}

export function slotOf({ address, boundAddress, port }: ContainerSpec): Slot {
  return { address, boundAddress, port };
}

/** The address on which the container itself listens. A port gate may listen on the spec's own address. */
export function boundEndpoint({ boundAddress, port }: ContainerSpec): Endpoint {
  return { address: boundAddress, port };
}

/**
 * Runs containers. It knows nothing of desired state, of health, or of when a start is given up. Calls throw
 * `RetryableError` or `TerminalError`.
 */
export interface Runtime {
  /** All containers with a mark, of any owner, running or not, and those of `names`. */
  list(names: ReadonlySet<string>, signal: AbortSignal): Promise<readonly ContainerInstance[]>;
  /** Creates and starts a container and returns its id. Removes one that doesn't start; restarts one that dies later. */
  start(launch: Launch, signal: AbortSignal): Promise<string>;
  /** Asks it to end, kills it if it still runs after a grace period, and keeps it as `stopped`. */
  stop(id: string, signal: AbortSignal): Promise<void>;
  /** Starts a stopped container again; does nothing to a running one. */
  resume(id: string, signal: AbortSignal): Promise<void>;
  /** Why it doesn't run (`exit code 1`); `null` while it runs. */
  death(id: string, signal: AbortSignal): Promise<string | null>;
  /** The last lines of its output, oldest first. They may contain secrets. */
  lastLines(id: string, signal: AbortSignal): Promise<readonly string[]>;
  /**
   * Follows its output after the positions until it has stopped or `signal` aborts; `gone`: there is no such container.
   * `write` gets the lines in their order, and may make the runtime wait.
   */
  output(
    id: string,
    positions: OutputPositions,
    write: (lines: readonly OutputLine[]) => Promise<void>,
    signal: AbortSignal,
  ): Promise<'ended' | 'gone'>;
  /** Stops it as `stop` does, and removes it. A missing container is no error. */
  remove(id: string, signal: AbortSignal): Promise<void>;
  /** Names of containers that died, vanished or became unhealthy; an empty name if events were missed. */
  losses(signal: AbortSignal): AsyncIterable<string>;
  close(): Promise<void>;
}
