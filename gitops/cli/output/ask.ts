import { createInterface } from 'node:readline/promises';

/** Asks on the terminal; `null`: standard input or error is no terminal, so there is no one to ask. */
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
