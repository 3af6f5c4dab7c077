/** The sites repository could not be read or written; it is not known what stands in it. */
export class SitesRepoError extends Error {
  override name = 'SitesRepoError';
}

/** Has git's own words, without the password of the URL that it names. */
export async function wrapGitError<T>(verb: string | undefined, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const reason = (cause instanceof Error ? cause.message : String(cause)).replace(/\/\/[^/@\s]+@/g, '//');
    throw new SitesRepoError(`git ${verb}: ${reason}`, { cause });
  }
}
