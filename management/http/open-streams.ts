import type { FastifyInstance, FastifyReply } from 'fastify';
import { counted } from '../../base/text.ts';
import { callerOf } from './auth.ts';
import { ManagementProblem } from './errors.ts';
import type { Limits } from './limits.ts';

/** The event streams and exports that subjects have open in this process. */
export class OpenStreams {
  readonly #limits: Pick<Limits, 'streamsPerSubject'>;
  /** By kind and subject. */
  readonly #counts = new Map<string, number>();
  /** A stop of the process aborts streams instead of waiting for their end. */
  readonly #streams = new Set<AbortController>();

  constructor(app: FastifyInstance, limits: Pick<Limits, 'streamsPerSubject'>) {
    this.#limits = limits;
    app.addHook('preClose', async () => {
      for (const stream of this.#streams) stream.abort();
    });
  }

  /**
   * Counts an event stream of the caller until its connection is closed. The signal says that this has happened, or that
   * the process stops. Throws `too_many_streams`.
   */
  stream(reply: FastifyReply): AbortSignal {
    this.#count('stream', reply);
    const stop = new AbortController();
    this.#streams.add(stop);
    reply.raw.once('close', () => {
      stop.abort();
      this.#streams.delete(stop);
    });
    // Otherwise the connection is kept alive for 72 s after the stream, and can delay a stop of the process.
    reply.header('connection', 'close');
    return stop.signal;
  }

  /** Counts an export of the caller until its connection is closed. Throws `too_many_streams`. */
  countExport(reply: FastifyReply): void {
    this.#count('export', reply);
  }

  #count(kind: 'stream' | 'export', reply: FastifyReply): void {
    const key = `${kind} ${callerOf(reply.request).subject}`;
    const open = this.#counts.get(key) ?? 0;
    if (open >= this.#limits.streamsPerSubject) {
      const many = counted(open, `${kind} of this subject is`, `${kind}s of this subject are`);
      const detail = `${many} open; close one first`;
      throw new ManagementProblem('too_many_streams', { detail });
    }
    this.#counts.set(key, open + 1);
    reply.raw.once('close', () => {
      const left = (this.#counts.get(key) ?? 1) - 1;
      if (left === 0) this.#counts.delete(key);
      else this.#counts.set(key, left);
    });
  }
}
