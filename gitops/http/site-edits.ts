import { canonicalJson } from '../base/ownership.ts';
import { formatManifest, parseManifest } from '../manifest/load.ts';
import { isFirstPartyHost, type Manifest, type ManifestInput, manifestSchema } from '../manifest/schema.ts';
import { decryptSecret } from '../manifest/secrets.ts';
import { fieldErrors, ProblemError } from './errors.ts';

/** The manifest in a site's file; an unusable one can't be edited by anybody but a person. */
export function currentManifest(site: string, text: string | null): Manifest {
  if (text === null) throw new ProblemError('unknown_site', `there is no site ${site}`);
  const parsed = parseManifest(text, `${site}.yaml`);
  if (parsed.ok) return parsed.manifest;
  throw new ProblemError('invalid_manifest', `${site}.yaml in the sites repository must be mended first`, {
    errors: parsed.problems,
  });
}

/** Writes what a request asks for, keeping the repository's text where it already says the same. */
export function provisionEdit(manifest: Manifest, current: string | null, sameSecret: boolean): string {
  if (current === null) return formatManifest(manifest);
  const parsed = parseManifest(current, `${manifest.site}.yaml`);
  if (!parsed.ok) return formatManifest(manifest);
  const wanted = sameSecret ? { ...manifest, containerConfig: parsed.manifest.containerConfig } : manifest;
  return canonicalJson(wanted) === canonicalJson(parsed.manifest) ? current : formatManifest(wanted);
}

/** True where both are ciphertexts of one plaintext: encrypting again gives other bytes, but no other config. */
export async function samePlaintext(identity: string, one: string, other: string): Promise<boolean> {
  if (one === other) return true;
  try {
    const [first, second] = await Promise.all([decryptSecret(identity, one), decryptSecret(identity, other)]);
    return first.fingerprint === second.fingerprint;
  } catch {
    // What can't be decrypted here can't be said to be the same.
    return false;
  }
}

/** Adds a first-party host to a site. */
export function addCustomDomain(site: string, domain: string, current: string | null): string {
  const manifest = currentManifest(site, current);
  if (manifest.state === 'absent') throw new ProblemError('unknown_site', `the site ${site} is removed`);
  if (
    !isFirstPartyHost(
      domain,
      manifest.domains.map((entry) => entry.domain),
    )
  ) {
    throw new ProblemError(
      'foreign_domain',
      `${domain} is not under the registrable part of any of ${site}'s domains`,
    );
  }
  if (manifest.customDomains.includes(domain)) return current ?? '';
  return write({ ...manifest, customDomains: [...manifest.customDomains, domain] });
}

/** Takes a first-party host away; one that isn't there leaves the text as it is. */
export function removeCustomDomain(site: string, domain: string, current: string | null): string {
  const manifest = currentManifest(site, current);
  if (!manifest.customDomains.includes(domain)) return current ?? '';
  return write({ ...manifest, customDomains: manifest.customDomains.filter((name) => name !== domain) });
}

/** Puts the tombstone; a site that has one stays as it is. */
export function removeSite(site: string, current: string | null): string {
  const manifest = currentManifest(site, current);
  if (manifest.state === 'absent') return current ?? '';
  if (manifest.protect)
    throw new ProblemError('site_protected', `${site} is protected; set protect: false first`);
  return write({ ...manifest, state: 'absent' });
}

/** Whatever git says of the site now is what counts. */
export function unchanged(site: string, current: string | null): string {
  if (current === null) throw new ProblemError('unknown_site', `there is no site ${site}`);
  return current;
}

/** Stops or goes on with changes of a site, drift included. */
export function suspendSite(site: string, suspend: boolean, current: string | null): string {
  const manifest = currentManifest(site, current);
  if (manifest.suspend === suspend) return current ?? '';
  return write({ ...manifest, suspend });
}

/** Gives a site another image; its containers are swapped for new ones by the next pass. */
export function changeImage(site: string, image: string, current: string | null): string {
  const manifest = currentManifest(site, current);
  if (manifest.state === 'absent') throw new ProblemError('unknown_site', `the site ${site} is removed`);
  if (manifest.image === image) return current ?? '';
  return write({ ...manifest, image });
}

/** Takes a tombstone's file out of the tree; any other file stays. */
export function pruneTombstone(site: string, current: string | null): string | null {
  return current !== null && currentManifest(site, current).state === 'absent' ? null : current;
}

function write(manifest: ManifestInput): string {
  const result = manifestSchema.safeParse(manifest);
  if (result.success) return formatManifest(result.data);
  const { error: cause } = result;
  throw new ProblemError('invalid_manifest', undefined, { errors: fieldErrors(cause.issues) }, { cause });
}
