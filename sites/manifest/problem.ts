/** What is wrong with a manifest: dotted `path` into it, 1-based `line` if it is known. */
export interface Problem {
  readonly path: string;
  readonly message: string;
  readonly line?: number;
}

/** A problem of the manifest at `file` as text for a person: `file:line: path: message`. */
export function describeProblem(
  file: string,
  { path, message, line }: Omit<Problem, 'line'> & { readonly line?: number | null },
): string {
  const position = typeof line === 'number' ? `${file}:${line}` : file;
  return `${position}: ${path === '' ? '' : `${path}: `}${message}`;
}
