import { identityToRecipient } from 'age-encryption';
import { canonicalJson } from '../../base/canonical-json.ts';
import { fieldErrors } from '../../base/http/problem.ts';
import { formatManifest } from '../../sites/manifest/load.ts';
import { readManifest } from '../../sites/manifest/read.ts';
import {
  isFirstPartyHost,
  type Manifest,
  type ManifestInput,
  manifestSchema,
} from '../../sites/manifest/schema.ts';
import { SECRET_MEMBERS } from '../../sites/manifest/secret-members.ts';
import {
  decryptSecret,
  encryptFor,
  encryptSecret,
  identitiesIn,
  type Secret,
  unbound,
} from '../../sites/manifest/secrets.ts';
import { ProvisionerProblem } from './errors.ts';

/** The manifest in a site's file. Throws where it is invalid: only a person can fix that. */
export async function currentManifest(site: string, text: string | null): Promise<Manifest> {
  if (text === null) throw new ProvisionerProblem('unknown_site', { detail: `there is no site ${site}` });
  const parsed = await readManifest(text, `${site}.yaml`);
  if (parsed.ok) return parsed.manifest;
  throw new ProvisionerProblem('invalid_manifest', {
    detail: `fix ${site}.yaml in the sites repository first`,
    errors: parsed.problems,
  });
}

/**
 * Writes the requested manifest. The text is unchanged if nothing but the encryption of secrets differs.
 */
export async function provisionEdit(
  identity: string,
  manifest: Manifest,
  { current, mayBind }: { readonly current: string | null; readonly mayBind: MayBind },
): Promise<string> {
  const bound = await bindSecrets(identity, manifest, mayBind);
  if (current === null) return formatManifest(bound);
  const parsed = await readManifest(current, `${manifest.site}.yaml`);
  if (!parsed.ok) return formatManifest(bound);
  const desired = await keepCiphertexts(identity, bound, parsed.manifest);
  return canonicalJson(desired) === canonicalJson(parsed.manifest) ? current : formatManifest(desired);
}

/**
 * The current text, with copied secrets bound to its container. Throws `superseded` if it no longer asks for the
 * request's container: the request may be old, and its site removed or replaced since.
 */
export async function stillPresent(
  identity: string,
  { site, container }: Pick<Manifest, 'site' | 'container'>,
  {
    revision,
    current,
    mayBind,
  }: { readonly revision: string; readonly current: string | null; readonly mayBind: MayBind },
): Promise<string> {
  const detail = `${site}.yaml was removed, or replaced, after ${revision.slice(0, 12)}`;
  if (current === null) throw new ProvisionerProblem('superseded', { detail });
  const manifest = await currentManifest(site, current);
  if (manifest.state !== 'present' || manifest.container !== container) {
    throw new ProvisionerProblem('superseded', { detail });
  }
  const isCopied: MayBind = (armored, holder) => holder !== null && mayBind(armored, holder);
  const bound = await bindSecrets(identity, manifest, isCopied);
  return bound === manifest ? current : formatManifest(bound);
}

/** Whether a ciphertext may be bound to the manifest's container; `holder`: the container that it is bound to now. */
type MayBind = (armored: string, holder: string | null) => boolean;

/** The text with those secrets bound to its container that aren't bound to any. */
export async function bindText(identity: string, site: string, text: string): Promise<string> {
  const parsed = await readManifest(text, `${site}.yaml`);
  if (!parsed.ok || parsed.manifest.state === 'absent') return text;
  const bound = await bindSecrets(identity, parsed.manifest, (_, holder) => holder === null);
  return bound === parsed.manifest ? text : formatManifest(bound);
}

/**
 * The manifest with its secrets bound to its container. Management may copy those of another container, which it can't
 * decrypt. A text that can't be decrypted here stays as it is: the reading of the site says why.
 */
async function bindSecrets(identity: string, manifest: Manifest, mayBind: MayBind): Promise<Manifest> {
  let bound = manifest;
  for (const { read, replace } of SECRET_MEMBERS) {
    const given = read(manifest);
    const decrypted = given === undefined ? null : await decryptSecret(identity, given).catch(() => null);
    if (given === undefined || decrypted === null) continue;
    const { secret, container } = unbound(decrypted);
    if (container === manifest.container || !mayBind(given, container)) continue;
    const [first = ''] = identitiesIn(identity);
    const recipient = await identityToRecipient(first);
    bound = replace(bound, await encryptFor(recipient, manifest.container, secret.reveal()));
  }
  return bound;
}

/**
 * The text with its secrets encrypted to the first identity of the key file; unchanged where all are. Throws
 * `invalid_manifest` where one can't be decrypted.
 */
export async function rotateSecrets(keyFile: string, site: string, text: string | null): Promise<string> {
  const manifest = await currentManifest(site, text);
  const [first = ''] = identitiesIn(keyFile);
  const recipient = await identityToRecipient(first);
  let rotated = manifest;
  for (const { name, read, replace } of SECRET_MEMBERS) {
    const given = read(manifest);
    if (given === undefined || (await decryptSecret(first, given).catch(() => null)) !== null) continue;
    const secret = await decrypted(keyFile, name, given);
    // The plaintext has its binding to the container.
    rotated = replace(rotated, await encryptSecret(recipient, secret.reveal()));
  }
  return rotated === manifest ? (text ?? '') : formatManifest(rotated);
}

/** Throws `invalid_manifest` where a secret of the manifest can't be decrypted here, or is another container's. */
export async function demandSecrets(keyFile: string, manifest: Manifest): Promise<void> {
  for (const { name, read } of SECRET_MEMBERS) {
    const given = read(manifest);
    if (given === undefined) continue;
    const { container } = unbound(await decrypted(keyFile, name, given));
    if (container === null || container === manifest.container) continue;
    const detail = `${name} was encrypted for another container`;
    throw new ProvisionerProblem('invalid_manifest', { detail });
  }
}

async function decrypted(keyFile: string, name: string, armored: string): Promise<Secret> {
  return await decryptSecret(keyFile, armored).catch((cause: Error) => {
    const detail = `${name} can’t be decrypted on this host: ${cause.message}`;
    throw new ProvisionerProblem('invalid_manifest', { detail, cause });
  });
}

/** The manifest with git's ciphertext for each secret whose plaintext is the same. */
async function keepCiphertexts(identity: string, manifest: Manifest, present: Manifest): Promise<Manifest> {
  let kept = manifest;
  for (const { read, replace } of SECRET_MEMBERS) {
    const [given, stored] = [read(manifest), read(present)];
    if (given === undefined || stored === undefined) continue;
    if (await samePlaintext(identity, given, stored)) kept = replace(kept, stored);
  }
  return kept;
}

/** True where both are ciphertexts of one plaintext: encrypting a plaintext again gives other bytes. */
async function samePlaintext(identity: string, one: string, other: string): Promise<boolean> {
  if (one === other) return true;
  try {
    const [first, second] = await Promise.all([decryptSecret(identity, one), decryptSecret(identity, other)]);
    return first.fingerprint === second.fingerprint;
  } catch {
    // A text that can't be decrypted here can't be compared.
    return false;
  }
}

/** Adds a first-party host to a site. */
export async function addCustomDomain(site: string, domain: string, current: string | null): Promise<string> {
  const manifest = await currentManifest(site, current);
  if (manifest.state === 'absent')
    throw new ProvisionerProblem('unknown_site', { detail: `the site ${site} is removed` });
  if (
    !isFirstPartyHost(
      domain,
      manifest.domains.map((entry) => entry.domain),
    )
  ) {
    throw new ProvisionerProblem('foreign_domain', {
      detail: `${domain} is not under the registrable part of any of ${site}'s domains`,
    });
  }
  if (manifest.customDomains.includes(domain)) return current ?? '';
  return write({ ...manifest, customDomains: [...manifest.customDomains, domain] });
}

/** Removes a first-party host. The text is unchanged where the site has no such host. */
export async function removeCustomDomain(
  site: string,
  domain: string,
  current: string | null,
): Promise<string> {
  const manifest = await currentManifest(site, current);
  if (!manifest.customDomains.includes(domain)) return current ?? '';
  return write({ ...manifest, customDomains: manifest.customDomains.filter((name) => name !== domain) });
}

/** Writes the tombstone. The text is unchanged where it is one already. */
export async function removeSite(site: string, current: string | null): Promise<string> {
  const manifest = await currentManifest(site, current);
  if (manifest.state === 'absent') return current ?? '';
  if (manifest.protect)
    throw new ProvisionerProblem('site_protected', {
      detail: `${site} is protected; set protect: false first`,
    });
  return write({ ...manifest, state: 'absent' });
}

/** The text as git holds it now. */
export function unchanged(site: string, current: string | null): string {
  if (current === null) throw new ProvisionerProblem('unknown_site', { detail: `there is no site ${site}` });
  return current;
}

/** Suspends or resumes changes of a site, including the repair of drift. Resuming also switches its serving on. */
export async function suspendSite(site: string, suspend: boolean, current: string | null): Promise<string> {
  const manifest = await currentManifest(site, current);
  const { serving } = manifest;
  const resumed = suspend ? serving : undefined;
  if (manifest.suspend === suspend && (suspend || serving !== false)) return current ?? '';
  return write({ ...manifest, suspend, serving: resumed });
}

/**
 * Switches a site's serving off. That is a change too, so it would wait while the site is suspended: then it is refused
 * with `site_suspended`.
 */
export async function stopServing(site: string, current: string | null): Promise<string> {
  const manifest = await currentManifest(site, current);
  if (manifest.suspend) {
    const detail = `${site} is suspended, so the change would wait: resume it first`;
    throw new ProvisionerProblem('site_suspended', { detail });
  }
  if (manifest.serving === false) return current ?? '';
  return write({ ...manifest, serving: false });
}

/** Changes a site's image. The next pass replaces its containers. */
export async function changeImage(site: string, image: string, current: string | null): Promise<string> {
  const manifest = await currentManifest(site, current);
  if (manifest.state === 'absent')
    throw new ProvisionerProblem('unknown_site', { detail: `the site ${site} is removed` });
  if (manifest.image === image) return current ?? '';
  return write({ ...manifest, image });
}

/** Deletes the file of a tombstone. Any other text is unchanged. */
export async function pruneTombstone(site: string, current: string | null): Promise<string | null> {
  return current !== null && (await currentManifest(site, current)).state === 'absent' ? null : current;
}

function write(manifest: ManifestInput): string {
  const result = manifestSchema.safeParse(manifest);
  if (result.success) return formatManifest(result.data);
  const { error: cause } = result;
  throw new ProvisionerProblem('invalid_manifest', { errors: fieldErrors(cause.issues), cause });
}
