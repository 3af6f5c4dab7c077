export type OutputStream = 'stdout' | 'stderr';

/** A line's place in a stream of a container's output, by which a later process continues. */
export interface OutputPosition {
  /** When the engine read it: ISO 8601 in UTC, with nanoseconds. */
  readonly at: string;
  /** The number of the stream's frames with exactly this time, up to and including the line's last frame. */
  readonly count: number;
}

export type OutputPositions = Readonly<Partial<Record<OutputStream, OutputPosition>>>;

export interface OutputLine {
  readonly stream: OutputStream;
  /** ISO 8601 in UTC. */
  readonly time: string;
  /** `null`: this entry takes the place of `lost` lines, which were too long or too many to be read. */
  readonly text: string | null;
  readonly lost?: number;
  /** `null`: the output can't be read again. */
  readonly position: OutputPosition | null;
}

/** Octets of the longest line that is read: many, because templates also print bodies (which aren't kept). */
export const LONGEST_LINE = 256 * 1024;

/** The container that printed a line. */
export interface OutputSource {
  readonly site: string;
  /** The container's id in its runtime. */
  readonly id: string;
  /** `processing/0` */
  readonly place: string;
}

/** Where containers' output is kept. */
export interface OutputSink {
  /** The positions after which the output is to be read. If neither stream has one, it is read from the beginning. */
  positions(source: OutputSource): Promise<OutputPositions>;
  /** Takes lines in their order. Resolves when it can take more; a caller that doesn't wait for that only uses more memory. */
  write(source: OutputSource, lines: readonly OutputLine[]): Promise<void>;
  /** The container is no longer read. */
  ended(source: OutputSource): Promise<void>;
  /** Deletes all lines of a site that has ended. */
  forget(site: string): Promise<void>;
}
