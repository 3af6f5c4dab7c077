import { createInterface } from 'node:readline/promises';

/**
 * Asks on the terminal. Returns the answer, empty after Ctrl-C; `null` if stdin or stderr is not a terminal.
 */
export async function ask(question: string): Promise<string | null> {
  const { stdin: input, stderr: output } = process;
  if (!input.isTTY || !output.isTTY) return null;
  const terminal = createInterface({ input, output });
  try {
    return (await terminal.question(question)).trim();
  } catch {
    // Ctrl-C or Ctrl-D.
    return '';
  } finally {
    terminal.close();
  }
}
