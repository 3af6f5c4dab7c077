/** A data point of Analytics Engine as the host gets it; `time` in milliseconds since 1970. */
export interface HostPoint {
  readonly dataset: string;
  readonly time: number;
  readonly index: string;
  readonly blobs: readonly string[];
  readonly doubles: readonly number[];
}
