import type { Check } from '../../edge/verification/contract.ts';

export const CHECKLIST_STATES = ['done', 'open', 'unknown'] as const;

/** What is done in Tag Manager, in the order of doing it, with where to click. */
export const CHECKLIST = {
  server_container: {
    title: 'The server container is provisioned by hand; Tagyard has its configuration',
    where: 'Server container: Admin, Container settings, Manually provision tagging server',
  },
  tagging_server_url: {
    title: 'A URL of the server container leads to this site',
    where: 'Server container: Admin, Container settings, Server container URLs',
  },
  client_claims: {
    title: 'A client of the server container claims the requests of GA4',
    where: 'Server container: Clients, New, Google Analytics: GA4 (Web)',
  },
  ids_agree: {
    title: 'The web container is the one that the domains load',
    where: 'Web container: its id beside its name; here: the web tag id of each domain',
  },
  google_tag: {
    title: 'The Google tag sends to the server container',
    where: 'Web container: Tags, the Google tag, Configuration settings, server_container_url',
  },
  published: {
    title: 'The web container is published',
    where: 'Web container: Submit, Publish',
  },
} as const satisfies Record<string, { readonly title: string; readonly where: string }>;
export type ChecklistId = keyof typeof CHECKLIST;
export const CHECKLIST_IDS = Object.keys(CHECKLIST) as [ChecklistId, ...ChecklistId[]]; // Object.keys forgets the key type

/** What is known of one point. */
export interface PointVerdict {
  readonly id: ChecklistId;
  readonly state: (typeof CHECKLIST_STATES)[number];
  readonly detail: string;
}

/** The points that a verification shows from outside, by its checks. */
export function judgeVerification(checks: readonly Check[]): PointVerdict[] {
  return [
    judge('server_container', checks, 'container_config', {
      passed: 'a server runs with the configuration',
      failed: 'no server runs with the configuration: copy it again',
    }),
    judge('published', checks, 'script', {
      passed: 'the script of each domain’s web container answers',
      failed: 'the script of a web container doesn’t answer',
    }),
  ];
}

function judge(
  id: ChecklistId,
  checks: readonly Check[],
  name: Check['name'],
  details: { readonly passed: string; readonly failed: string },
): PointVerdict {
  const those = checks.filter((check) => check.name === name && check.status !== 'skipped');
  if (those.length === 0) return { id, state: 'unknown', detail: 'the last verification couldn’t check it' };
  const isFailed = those.some(({ status }) => status === 'failed');
  return isFailed
    ? { id, state: 'open', detail: details.failed }
    : { id, state: 'done', detail: details.passed };
}
