import { replaceHidden } from '../../base/text.ts';
import { redactUrls } from './credentials.ts';

/** The sites repository can't be read or written, so its content is unknown. */
export class SitesRepoError extends Error {
  override name = 'SitesRepoError';
  /** The words of a server that refuses a commit, which is not made then; `null`: another fault. */
  readonly refusal: string | null = null;
}

/** The server refused a commit, by a hook or because of a protected branch. To try again would change nothing. */
export class CommitRefusedError extends SitesRepoError {
  override name = 'CommitRefusedError';
  override readonly refusal: string;
  constructor(refusal: string, options: ErrorOptions) {
    super(`the server of the sites repository refuses the commit: ${refusal}`, options);
    this.refusal = refusal;
  }
}

const MOST_WORDS = 1_000;
/** git's words for a server that can't write now, or whose branch has just moved. */
const PASSING = /lock ref|failed to update ref|old value|reference already exists|unpacker error/;

/** A server's refusal of a push, in its own words; `null`: the push failed for another reason. */
export function refusalOf(error: unknown): string | null {
  const text = error instanceof Error ? error.message : '';
  const reason = /^ ! \[remote rejected\] .* \((.*)\)$/m.exec(text)?.[1];
  if (reason === undefined || PASSING.test(reason)) return null;
  const said = [...text.matchAll(/^(?:git push: )?remote: (.*)$/gm)].map(([, line = '']) =>
    replaceHidden(line).trim(),
  );
  const words = said.filter((line) => line !== '').join(' ');
  return (words === '' ? reason : `${words} (${reason})`).slice(0, MOST_WORDS);
}

/** Throws `SitesRepoError` with git's message, but removes user and password from each URL in the message. */
export async function wrapGitError<T>(verb: string | undefined, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const reason = redactUrls(cause instanceof Error ? cause.message : String(cause));
    throw new SitesRepoError(`git ${verb}: ${reason}`, { cause });
  }
}
