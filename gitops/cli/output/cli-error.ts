/** Something that the person at the terminal can mend: shown as one line, exit code 1, no stack. */
export class CliError extends Error {
  override name = 'CliError';
}
