import type Docker from 'dockerode';
import { LineSplitter } from '../../../../base/line-splitter.ts';
import { callDocker, unlessGone } from '../../../clients/docker.ts';
import {
  LONGEST_LINE,
  type OutputLine,
  type OutputPosition,
  type OutputPositions,
  type OutputStream,
} from './output.ts';

/**
 * The engine reads both streams in parallel, so lines can be out of chronological order. Their times then differ by far
 * less than this (milliseconds).
 */
const OVERLAP_MS = 1_000;
/** The length of `2026-11-23T10:28:20.123456789Z `, which precedes the text in each frame. */
const STAMP = 31;
const STREAMS: Readonly<Record<number, OutputStream>> = { 1: 'stdout', 2: 'stderr' };

/**
 * Follows a container's output after the positions, each line once, until the container stops or `signal` aborts.
 * `write` gets the lines of one chunk; the engine waits meanwhile.
 */
export async function followDocker(
  docker: Docker,
  { id, positions }: { readonly id: string; readonly positions: OutputPositions },
  write: (lines: readonly OutputLine[]) => Promise<void>,
  signal: AbortSignal,
): Promise<'ended' | 'gone'> {
  const since = sinceOf(positions);
  const stream = await unlessGone(
    callDocker(
      'following a container’s log',
      docker.getContainer(id).logs({
        ...{ follow: true, stdout: true, stderr: true, timestamps: true, abortSignal: signal },
        ...(since === null ? {} : { since }),
      }),
    ),
  );
  if (stream === null) return 'gone';
  const frames = new FrameReader(positions);
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      const lines = frames.push(chunk);
      if (lines.length > 0) await write(lines);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return 'ended';
}

/** The time from which the engine must send again, in seconds since 1970; `null`: from the beginning. */
function sinceOf({ stdout, stderr }: OutputPositions): number | null {
  const newest = [stdout?.at ?? '', stderr?.at ?? ''].sort().at(-1) ?? '';
  if (newest === '') return null;
  const ms = Date.parse(`${newest.slice(0, 23)}Z`) - OVERLAP_MS;
  return ms / 1_000;
}

interface OpenLine {
  readonly splitter: LineSplitter;
  position: OutputPosition | null;
}

/**
 * Reads frames: a header of 8 octets (stream, 0, 0, 0, length), a time and a text, which ends with a line break unless
 * the line continues in the stream's next frame (Docker Engine API, "Stream format"). Skips what is before the positions.
 */
export class FrameReader {
  readonly #skipped: OutputPositions;
  readonly #open: Record<OutputStream, OpenLine>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(positions: OutputPositions) {
    this.#skipped = positions;
    const open = () => ({ splitter: new LineSplitter(LONGEST_LINE), position: null });
    this.#open = { stdout: open(), stderr: open() };
  }

  /** The lines that end in the chunk. */
  push(chunk: Buffer): OutputLine[] {
    const data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const lines: OutputLine[] = [];
    let at = 0;
    while (at + 8 <= data.length) {
      const end = at + 8 + data.readUInt32BE(at + 4);
      if (end > data.length) break;
      const stream = STREAMS[data.readUInt8(at)];
      if (stream !== undefined) lines.push(...this.#read(stream, data.subarray(at + 8, end)));
      at = end;
    }
    this.#rest = Buffer.from(data.subarray(at));
    return lines;
  }

  #read(stream: OutputStream, frame: Buffer): OutputLine[] {
    const at = frame.toString('latin1', 0, STAMP - 1);
    const open = this.#open[stream];
    const count = open.position?.at === at ? open.position.count + 1 : 1;
    const position = { at, count };
    open.position = position;
    const done = this.#skipped[stream];
    if (done !== undefined && (at < done.at || (at === done.at && count <= done.count))) return [];
    const time = new Date(`${at.slice(0, 23)}Z`).toISOString();
    return open.splitter
      .push(frame.subarray(STAMP))
      .map((text) => ({ stream, time, text, position, ...(text === null ? { lost: 1 } : {}) }));
  }
}
