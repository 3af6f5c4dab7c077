import { redactUrls } from './credentials.ts';

/** The sites repository can't be read or written, so its content is unknown. */
export class SitesRepoError extends Error {
  override name = 'SitesRepoError';
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
