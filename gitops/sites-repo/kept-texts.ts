import type { GitDir } from './git-dir.ts';
import type { SiteFiles } from './site-files.ts';

/** A site's name in a text that may be its manifest, whatever else the text has. */
const NAMED = /(?:^|[{,\s])["']?site["']?\s*:\s*["']?([a-z0-9-]+)/gm;

/** What a revision has under names that are no site's. */
export interface KeptTexts {
  /** The path of this very blob. */
  ofBlob(blob: string): string | undefined;
  /** The path of a file whose text names this site. */
  ofSite(site: string): string | undefined;
}

/** Reads every file of a revision. Throws `SitesRepoError`. */
export async function readKeptTexts(
  revision: string,
  { git, files }: { readonly git: GitDir; readonly files: SiteFiles },
): Promise<KeptTexts> {
  const pathOf = new Map<string, string>();
  for (const line of (await git.run(['ls-tree', '-r', '-z', revision])).toString().split('\0')) {
    const [, blob = '', path = ''] = /^\d{6} blob (\w+)\t(.+)$/s.exec(line) ?? [];
    if (blob !== '') pathOf.set(blob, path);
  }
  const named = new Map<string, string>();
  // Any name will do: the texts are not read as manifests.
  for await (const batch of files.texts([...pathOf.keys()].map((blob) => ({ site: '', blob })))) {
    for (const { blob, text } of batch) {
      const path = pathOf.get(blob) ?? '';
      for (const [, site = ''] of text.matchAll(NAMED)) if (path !== `${site}.yaml`) named.set(site, path);
    }
  }
  return { ofBlob: (blob) => pathOf.get(blob), ofSite: (site) => named.get(site) };
}
