import { canonicalContainerConfig } from '../../sites/manifest/container-config.ts';
import type { SiteZones } from '../../sites/manifest/own-zones.ts';
import { describeProblem } from '../../sites/manifest/problem.ts';
import { readManifest } from '../../sites/manifest/read.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import { SECRET_MEMBERS } from '../../sites/manifest/secret-members.ts';
import { decryptSecret, Secret, unbound } from '../../sites/manifest/secrets.ts';
import { readServiceAccount } from '../../sites/manifest/service-account.ts';
import type { SiteFile } from '../../sites/repo/files.ts';
import { describeMisplaced, type MisplacedFile } from '../../sites/repo/listing.ts';
import type { DesiredSite, OtherHostSite } from './desired-state.ts';

export interface DesiredStateSettings {
  /** Only manifests that name this host are applied. */
  readonly host: string;
  /** `AGE-SECRET-KEY-1…` of this host. */
  readonly ageIdentity: string;
  /** Names in them are the installation's own (`refusedNames`). */
  readonly zones: SiteZones;
  /** The last revision at which all of a site was applied here; `null`: none. Default: none for every site. */
  appliedRevision?(site: string): string | null;
}

/** What one file means for this host; `null`: it is no manifest. */
export type Reading = { readonly here: DesiredSite } | { readonly onOtherHost: OtherHostSite } | null;

/**
 * A file that isn't a valid manifest, or has secrets that this host can't use. Its last usable version stays in force
 * (docs/reconciler.md, rule 3).
 */
export interface UnreadableFile extends Pick<SiteFile, 'site' | 'path' | 'blob'> {
  readonly stalled: NonNullable<DesiredSite['stalled']>;
  /** It is a valid manifest that names this host. */
  readonly isHere: boolean;
  /** The path of a file with the site's name, if nothing is at the path of its manifest; else `null`. */
  readonly elsewhere: string | null;
}

const NO_SECRET = new Secret('');

/** Reads a site's file. The result is `unreadable` if the file can't be used here. */
export async function readSiteFile(
  file: SiteFile,
  settings: DesiredStateSettings,
): Promise<{ readonly reading: Reading } | { readonly unreadable: UnreadableFile }> {
  const parsed = await readManifest(file.text, file.path);
  const { site, path, blob } = file;
  if (parsed.ok) {
    const reading = await readValid(file, parsed.manifest, settings);
    const stalled = reading !== null && 'here' in reading ? reading.here.stalled : null;
    if (stalled === null) return { reading };
    return { unreadable: { site, path, blob, stalled, isHere: true, elsewhere: null } };
  }
  const message = parsed.problems.map((problem) => describeProblem(path, problem)).join('; ');
  const stalled = { reason: parsed.reason, message };
  return { unreadable: { site, path, blob, stalled, isHere: false, elsewhere: null } };
}

/** Used in place of a blob's id, because it changes with everything that the message depends on. */
export const misplacedId = ({ path, form, id }: MisplacedFile): string => `${form} ${id} ${path}`;

/** Treats a misplaced file as an unreadable one, with a message that says how to fix it. */
export function unreadableForm(misplaced: MisplacedFile): UnreadableFile {
  const { site, path } = misplaced;
  return {
    site,
    path: `${site}.yaml`,
    blob: misplacedId(misplaced),
    stalled: { reason: 'InvalidManifest', message: describeMisplaced(misplaced) },
    isHere: false,
    elsewhere: path === `${site}.yaml` ? null : path,
  };
}

/**
 * The configuration in its canonical form: the tag server accepts no other, but a person may have encrypted one with a
 * line break at its end. A configuration without a canonical form stays as it is: the site keeps its containers, and
 * the start of new ones fails with the reason.
 */
function startable(decrypted: Secret): Secret {
  const text = decrypted.reveal();
  const config = canonicalContainerConfig(text);
  return config.ok && config.text !== text ? new Secret(config.text) : decrypted;
}

/** What a valid manifest means for this host. Decrypts its secrets; stalls the site if that fails. */
export async function readValid(
  { site, blob, path }: Pick<SiteFile, 'site' | 'blob' | 'path'>,
  manifest: Manifest,
  { host, ageIdentity }: DesiredStateSettings,
): Promise<Reading> {
  if (manifest.host !== host) {
    const { state, protect } = manifest;
    return { onOtherHost: { host: manifest.host, state, protect } };
  }
  // A tombstone needs no secret, and its host may no longer have the identity.
  if (manifest.state === 'absent') {
    return { here: { site, blob, manifest: { ...manifest, config: NO_SECRET }, stalled: null } };
  }
  const stall = (reason: 'UndecryptableConfig' | 'InvalidManifest', message: string): Reading => ({
    here: { site, blob, manifest: null, stalled: { reason, message: `${path}: ${message}` } },
  });
  const decrypted = new Map<string, Secret>();
  const free: string[] = [];
  for (const { name, read } of SECRET_MEMBERS) {
    const armored = read(manifest);
    if (armored === undefined) continue;
    try {
      const { secret, container } = unbound(await decryptSecret(ageIdentity, armored));
      if (container !== null && container !== manifest.container) {
        return stall(
          'InvalidManifest',
          `${name} was encrypted for another container; set it by the API, or encrypt it anew`,
        );
      }
      if (container === null) free.push(name);
      decrypted.set(name, secret);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return stall('UndecryptableConfig', `${name} can't be decrypted on ${host}: ${reason}`);
    }
  }
  const config = startable(decrypted.get('containerConfig') ?? NO_SECRET);
  const key = decrypted.get('serviceAccount.key');
  const tlsKey = decrypted.get('tls.key');
  // A copy: the parser's strings are slices that would keep the whole text in memory.
  const copy = {
    ...structuredClone(manifest),
    config,
    ...(tlsKey === undefined ? {} : { tlsKey }),
    ...(free.length === 0 ? {} : { unbound: free }),
  };
  if (key === undefined) return { here: { site, blob, manifest: copy, stalled: null } };
  const problem = judgeAccount(manifest, key);
  if (problem !== null) return stall('InvalidManifest', problem);
  return { here: { site, blob, manifest: { ...copy, serviceAccountKey: key }, stalled: null } };
}

/** What is wrong with a decrypted key; `null`: nothing. Never quotes it. */
function judgeAccount({ serviceAccount }: Manifest, key: Secret): string | null {
  const verdict = readServiceAccount(key.reveal());
  if (!verdict.ok) {
    return `serviceAccount.key is not the key of a service account: ${`${verdict.member} ${verdict.problem}`.trim()}`;
  }
  const { facts } = verdict;
  const other = (['clientEmail', 'projectId', 'keyId'] as const).find(
    (name) => facts[name] !== serviceAccount?.[name],
  );
  return other === undefined ? null : `serviceAccount.${other} differs from that of serviceAccount.key`;
}
