/** What is wrong with a manifest: dotted `path` into it, 1-based `line` if it is known. */
export interface Problem {
  readonly path: string;
  readonly message: string;
  readonly line?: number;
}
