/** A request as it arrived. `headers` keep order, case and repetition; `query` is the raw text without `?`. */
export interface RecordedRequest {
  readonly at: string;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  /** The visitor's: the first of `x-forwarded-for`, else the peer's. */
  readonly address: string | null;
}

/** What `GET /tagyard-demo/events` answers: oldest first; `dropped` counts those that had to go. */
export interface RecordedEvents {
  readonly dropped: number;
  readonly events: readonly RecordedRequest[];
}

export interface Recorder {
  record(request: RecordedRequest): void;
  read(): RecordedEvents;
}

/** Keeps the last `limit` requests in memory. */
export function buildRecorder(limit = 500): Recorder {
  const events: RecordedRequest[] = [];
  let dropped = 0;
  return {
    record(request) {
      events.push(request);
      if (events.length > limit) {
        events.shift();
        dropped += 1;
      }
    },
    read: () => ({ dropped, events: [...events] }),
  };
}
