/** What is wrong with a manifest: dotted `path` into it, 1-based `line` where the text has one. */
export interface Problem {
  readonly path: string;
  readonly message: string;
  readonly line?: number;
}
