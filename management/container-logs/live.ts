import type { ContainerLog } from '../../gitops/report/container-logs.ts';
import { demandContainerOrOperator } from '../access/containers.ts';
import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';
import type { LiveLogsQuery } from './container-logs.schema.ts';
import type { HostLogs } from './host-logs.ts';

/** Milliseconds before the host is asked again after it did not answer. */
const RETRY_MS = 2_000;
/** Milliseconds between two checks of a stream's access. */
const CHECK_MS = 2_000;
/** Milliseconds of silence after which a comment line is sent, to keep the connection open. */
const BEAT_MS = 15_000;

interface LiveReader {
  readonly caller: Actor;
  readonly authorization: string | undefined;
  readonly container: string;
  readonly site: string;
  readonly filter: LiveLogsQuery;
  readonly last: string | undefined;
}

/** Streams of what the tag servers print. */
export class LiveLogs {
  readonly #context: Pick<Context, 'authenticate' | 'db' | 'clock' | 'settings' | 'log'>;
  readonly #host: HostLogs;

  constructor(context: Pick<Context, 'authenticate' | 'db' | 'clock' | 'settings' | 'log'>, host: HostLogs) {
    this.#context = context;
    this.#host = host;
  }

  /** Server-sent events: `log` with a line, and `gap` where lines were removed before they were sent. */
  async *stream(reader: LiveReader, signal: AbortSignal): AsyncGenerator<string> {
    const { clock } = this.#context;
    let after = reader.last;
    let checkedAt = clock.now();
    let sentAt = clock.now();
    yield 'retry: 2000\n\n';
    while (!signal.aborted) {
      const found = await this.#newer(reader, after);
      if (signal.aborted) return;
      if (clock.now() - checkedAt >= CHECK_MS) {
        if (!(await this.#mayRead(reader))) return;
        checkedAt = clock.now();
      }
      if (found === null) {
        await clock.sleep(RETRY_MS, { signal, ref: false });
      } else {
        after = found.position;
        const gap =
          found.missed === 0 ? '' : `event: gap\ndata: ${JSON.stringify({ missed: found.missed })}\n\n`;
        const text = gap + found.logs.map(logText).join('');
        if (text !== '') {
          sentAt = clock.now();
          yield text;
        }
      }
      if (clock.now() - sentAt >= BEAT_MS) {
        sentAt = clock.now();
        yield ': still here\n\n';
      }
    }
  }

  /** `null`: the host did not answer. */
  async #newer({ site, filter }: LiveReader, after: string | undefined) {
    try {
      return await this.#host.newer(site, { ...filter, after });
    } catch (err) {
      this.#context.log.debug({ err, site }, 'the lines of a site’s containers can’t be read');
      return null;
    }
  }

  /** False also if the check itself fails. */
  async #mayRead({ authorization, container }: LiveReader): Promise<boolean> {
    const { authenticate, log } = this.#context;
    try {
      await demandContainerOrOperator(this.#context, container, await authenticate(authorization), 'read');
      return true;
    } catch (err) {
      if (!(err instanceof ManagementProblem)) log.error({ err }, 'the access of streams can’t be checked');
      return false;
    }
  }
}

/** A line as a stream sends it. */
export function logText(log: ContainerLog): string {
  return `id: ${log.id}\nevent: log\ndata: ${JSON.stringify(log)}\n\n`;
}
