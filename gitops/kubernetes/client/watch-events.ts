import { z } from 'zod';
import { LineSplitter } from '../../../base/line-splitter.ts';
import { faultOfAnswer, KubernetesRetryable } from './errors.ts';
import type { Kind, KubernetesObject } from './kinds.ts';
import { objectOf, parsed } from './object-text.ts';

/** The most octets of one event. etcd refuses objects over 1.5 MB; as JSON with escapes, they are longer. */
const LONGEST_LINE = 16 * 1024 * 1024;

/** What the API server sends in a watch. An `ERROR` event has no type here: its error is thrown. */
export type WatchEvent =
  | { readonly type: 'set' | 'deleted'; readonly object: KubernetesObject }
  /** All changes up to this version have been sent. */
  | { readonly type: 'bookmark'; readonly resourceVersion: string };

const bookmark = z.object({ metadata: z.object({ resourceVersion: z.string() }) });

/** Reads the lines of a watch. What the connection's end has cut off is dropped: the next watch sends it again. */
export class WatchDecoder {
  readonly #kind: Kind;
  readonly #lines = new LineSplitter(LONGEST_LINE);

  constructor(kind: Kind) {
    this.#kind = kind;
  }

  /**
   * The events that end in the chunk. Throws the error that an event carries, and an error for a line that is no event.
   */
  *push(chunk: Buffer): Generator<WatchEvent> {
    for (const text of this.#lines.push(chunk)) {
      if (text === null) throw this.#unreadable(`a line over ${LONGEST_LINE} bytes`);
      if (text !== '') yield this.#event(text);
    }
  }

  #event(text: string): WatchEvent {
    const line = parsed(text);
    // No schema is used here, because `objectOf` checks the object in the event.
    if (typeof line !== 'object' || line === null || !('type' in line && typeof line.type === 'string')) {
      throw this.#unreadable('a line that is no event');
    }
    const { type } = line;
    const object = 'object' in line ? line.object : undefined;
    switch (type) {
      case 'ADDED':
      case 'MODIFIED':
        return { type: 'set', object: objectOf(object, { kind: this.#kind }) };
      case 'DELETED':
        return { type: 'deleted', object: objectOf(object, { kind: this.#kind }) };
      case 'BOOKMARK': {
        const { metadata } = this.#read(bookmark, object, 'a bookmark without a version');
        return { type: 'bookmark', resourceVersion: metadata.resourceVersion };
      }
      case 'ERROR':
        throw faultOfAnswer({ what: `watch ${this.#kind}`, status: 0, body: object });
      default:
        throw this.#unreadable(`an event of the type ${type}`);
    }
  }

  #read<Schema extends z.ZodType>(schema: Schema, value: unknown, what: string): z.output<Schema> {
    const read = schema.safeParse(value);
    if (!read.success) throw this.#unreadable(what);
    return read.data;
  }

  #unreadable(what: string): KubernetesRetryable {
    return new KubernetesRetryable('unavailable', `Kubernetes: watch ${this.#kind}: ${what}`);
  }
}
