/** A site's file in a tree: a regular file `*.yaml` at the root (no link, submodule or folder). */
export interface SiteBlob {
  readonly site: string;
  readonly blob: string;
}

/** Parses the output of `ls-tree -z`. */
export function siteBlobs(listing: Buffer): SiteBlob[] {
  return listing
    .toString()
    .split('\0')
    .flatMap((line) => {
      const match = /^100(?:644|755) blob ([0-9a-f]{40,64})\t([^/]+)\.yaml$/s.exec(line);
      return match?.[1] !== undefined && match[2] !== undefined ? [{ blob: match[1], site: match[2] }] : [];
    });
}

/** `for-each-ref` format that `branchTips` parses: revisions by branch. */
export const BRANCH_FORMAT = '--format=%(objectname) %(refname:lstrip=2)';
export function branchTips(listing: Buffer): ReadonlyMap<string, string> {
  const lines = listing.toString().split('\n').filter(Boolean);
  return new Map(
    lines.map((line) => {
      const space = line.indexOf(' ');
      return [line.slice(space + 1), line.slice(0, space)];
    }),
  );
}
