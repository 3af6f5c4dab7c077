/** A request as received. `headers` keep their order, case and repetitions; `query` is the raw text without `?`. */
interface RecordedRequest {
  readonly at: string;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  /** The visitor's address: the first of `x-forwarded-for`, else the peer's address. */
  readonly address: string | null;
}

/** The answer of `GET /tagyard-demo/events`, oldest first. `dropped` counts the requests over the limit. */
interface RecordedEvents {
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
