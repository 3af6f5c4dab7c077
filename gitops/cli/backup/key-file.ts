import { readFile } from 'node:fs/promises';
import { testIdentities } from '../../../sites/manifest/secrets.ts';
import { CliError } from '../output/cli-error.ts';

/** The text of an age key file, all of whose identities can be used. Throws `CliError`. */
export async function readKeyFile(path: string): Promise<string> {
  try {
    const text = await readFile(path, 'utf8');
    await testIdentities(text);
    return text;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CliError(`${path} can't be used: ${reason}`, { cause });
  }
}
