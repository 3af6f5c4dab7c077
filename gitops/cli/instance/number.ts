import { UsageError } from '../output/cli-error.ts';

/**
 * The number that a person gave as a text. Throws `UsageError` with `problem` if the text is not a number, or the number
 * isn't permitted.
 */
export function numberOf(
  text: string,
  { isPermitted, problem }: { isPermitted(value: number): boolean; readonly problem: string },
): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && isPermitted(value)) return value;
  throw new UsageError(problem);
}
