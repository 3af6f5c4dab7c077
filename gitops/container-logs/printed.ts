type Stream = 'stdout' | 'stderr';

/** What a container has printed, see `OutputLine`. */
export interface PrintedLine {
  readonly stream: Stream;
  readonly time: string;
  readonly text: string | null;
  readonly lost?: number;
  readonly position: { readonly at: string; readonly count: number } | null;
}
/** The container that printed a line. */
export interface Printing {
  readonly site: string;
  readonly id: string;
  readonly place: string;
}
/** By stream, the position after which a container's output is to be read. */
export type Positions = Partial<Record<Stream, { readonly at: string; readonly count: number }>>;

/** Where a line comes from. The first digits of a container's id in the engine are unique. */
export function placed({ id, place }: Printing, { stream, time, position }: PrintedLine) {
  return {
    ...{ source: place, stream, time },
    ...(position === null
      ? {}
      : { position: [shortId(id), stream, position.at, position.count] as [string, Stream, string, number] }),
  };
}

export function shortId(id: string): string {
  return id.slice(0, 16);
}
