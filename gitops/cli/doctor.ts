import { styleText } from 'node:util';
import { z } from 'zod';
import {
  type CertificateState,
  isCertificate,
  type PlanReport,
  planReportSchema,
  REASONS,
  type Reason,
  type ShownSite,
  shownSiteSchema,
} from '../report/report.ts';
import { type Output, print, short } from './print.ts';
import { callProvisioner, type Where } from './provisioner-client.ts';

/** What a person does about a condition; `null`: nothing. */
const REMEDIES: Readonly<Record<Reason, string | null>> = {
  Ready: null,
  Removed: null,
  Progressing: 'Wait; tagyard status shows it go on.',
  Removing: 'Wait; tagyard status shows it go on.',
  Retrying: 'Mend what the message names if it doesn’t mend itself; it is tried again by itself.',
  Failed: 'Change what the message names (manifest, host or permission), then run tagyard apply.',
  ObserveFailed: 'See that the named side answers and its token is valid; it is asked again by itself.',
  InvalidManifest:
    'Mend the file at that line (tagyard validate checks it), or run tagyard revert for the site.',
  UnsupportedVersion: 'Upgrade Tagyard on this host, or run tagyard revert for the site.',
  UndecryptableConfig:
    'Encrypt containerConfig to this host’s AGE_RECIPIENT, or restore its AGE_IDENTITY_FILE.',
  NameTaken: 'Give one of the two sites another name, port or token, or remove one.',
  Conflict: 'Remove the foreign thing, or set adopt: true in the manifest to take it over.',
  Suspended: 'Run tagyard resume for the site when its changes may be made.',
  Blocked: 'Look at tagyard plan; if it is meant, run tagyard approve with its checksum, else revert.',
  Frozen: 'Remove the file freeze in STATE_DIR, then run tagyard apply.',
  CertificatePending:
    'See what the message names (DNS, a file, port 80 from outside, the authority); it is looked at again by itself.',
  Drifted: 'Undo the change from outside, or set DRIFT_MODES to enforce for this kind.',
  RepairLoop: 'Find who else changes it: two installations, a script, a person. It is repaired again later.',
};

/** The same of a certificate, which may be amiss where the site itself is well; `null`: it isn't. */
const CERTIFICATES: Readonly<Record<CertificateState, { meaning: string; remedy: string } | null>> = {
  live: null,
  pending_dns: {
    meaning: 'a name that doesn’t lead to this host',
    remedy: 'Have the record made that the message asks for; it is looked at again by itself.',
  },
  pending_certificate: {
    meaning: 'a name without a certificate',
    remedy: 'See what the message names (a file, port 80 from outside, the authority).',
  },
  drifted: {
    meaning: 'a certificate that is served on and won’t be renewed',
    remedy: 'Mend what the message names before it ends.',
  },
  expired: { meaning: 'a certificate that has ended', remedy: 'Mend what the message names.' },
};

const sitesAnswer = z.object({ revision: z.string().nullable(), sites: z.array(shownSiteSchema) });

interface Finding {
  readonly site: string;
  readonly reason: Reason | CertificateState;
  readonly message: string;
  readonly meaning: string;
  readonly remedy: string;
}

/** Says of every site and certificate that isn't as it should be why, and what to do. Exit code 1 where there is any. */
export async function doctor(where: Where, options: Output): Promise<void> {
  const { revision, sites } = sitesAnswer.parse(await callProvisioner(where, 'GET', '/sites'));
  const plan =
    revision === null ? null : planReportSchema.parse(await callProvisioner(where, 'POST', '/plan', {}));
  const findings = sites.flatMap(findingsOf);
  const blocked = plan?.blocked ?? [];
  print(options, { revision, sites: sites.length, findings, blocked }, () =>
    render(revision, sites.length, findings, blocked),
  );
  if (findings.length + blocked.length > 0) process.exitCode = 1;
}

/** What keeps a site from being well comes first; of one that is, whatever is the matter with its certificates. */
function findingsOf({ site, reason, message, resources }: ShownSite): Finding[] {
  const remedy = REMEDIES[reason];
  if (remedy !== null) return [{ site, reason, message, meaning: REASONS[reason], remedy }];
  return resources.flatMap((one): Finding[] => {
    const amiss = isCertificate(one) ? CERTIFICATES[one.state] : null;
    if (!isCertificate(one) || amiss === null) return [];
    return [{ site, reason: one.state, message: `${one.key}: ${one.reason}`, ...amiss }];
  });
}

function render(
  revision: string | null,
  sites: number,
  findings: readonly Finding[],
  blocked: PlanReport['blocked'],
): string {
  const parts = findings.map(
    ({ site, reason, message, meaning, remedy }) =>
      `${styleText('bold', site)}: ${styleText('red', reason)}, ${meaning}\n  ${message}\n  → ${remedy}\n`,
  );
  const held = blocked.map(({ reason, detail }) => `${styleText('yellow', reason)}: ${detail}\n`);
  const well = sites - new Set(findings.map(({ site }) => site)).size;
  return `${[...parts, ...held].join('')}${well} of ${sites} sites are well at ${short(revision)}\n`;
}
