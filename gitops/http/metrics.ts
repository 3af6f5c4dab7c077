import { Gauge, Registry } from 'prom-client';
import { type Clock, systemClock } from '../../base/clock.ts';
import { isRenewalLate } from '../../edge/verification/certificate-life.ts';
import type { Loop } from '../loop/loop.ts';
import type { Operations } from '../loop/operations.ts';
import type { QuotaStatus } from '../report/quotas.ts';
import { REASONS, type ShownSite } from '../report/report.ts';
import { SITE_STATES } from '../report/site-state.ts';
import { shownReason } from './shown-reason.ts';

const ENDING_MS = 21 * 86_400_000;

/** Current figures as Prometheus text. Those of sites come from the loop, so that they match `GET /sites`. */
export async function renderMetrics(
  loop: Loop,
  operations: Operations,
  quotas: readonly QuotaStatus[],
  shownSites: readonly ShownSite[],
  clock: Clock = systemClock,
): Promise<string> {
  const registry = new Registry();
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name, help, labelNames, registers: [registry] });

  const sites = gauge('tagyard_sites', 'Sites of this host by the reason of their condition.', ['reason']);
  const counts = Map.groupBy(loop.statuses(), (status) => shownReason(status, loop.sourceProblem));
  for (const reason of Object.keys(REASONS)) sites.set({ reason }, 0);
  for (const [reason, statuses] of counts) sites.set({ reason }, statuses.length);

  const states = gauge('tagyard_site_states', 'Sites of this host by their state, as this host knows it.', [
    'state',
  ]);
  for (const state of SITE_STATES) {
    states.set({ state }, shownSites.filter((site) => site.state?.name === state).length);
  }

  const stateOf = gauge('tagyard_site_state', '1 for the state that a site has.', ['site', 'state']);
  const end = gauge(
    'tagyard_certificate_end_timestamp_seconds',
    'When the first certificate of a site ends, in seconds since 1970.',
    ['site'],
  );
  const ending = gauge(
    'tagyard_certificates_ending',
    'How many certificates of a site end within 21 days, with less than a quarter of their lifetime left.',
    ['site'],
  );
  const now = clock.date().getTime();
  for (const { site, state, resources } of shownSites) {
    if (state !== undefined) stateOf.set({ site, state: state.name }, 1);
    const lives = resources.flatMap((one) => {
      if (!('notAfter' in one) || one.notAfter === null) return [];
      const { notBefore, notAfter } = one;
      return [{ to: Date.parse(notAfter), isLate: isRenewalLate({ notBefore, notAfter }, now) }];
    });
    if (lives.length === 0) continue;
    end.set({ site }, Math.min(...lives.map(({ to }) => to)) / 1000);
    ending.set({ site }, lives.filter(({ to, isLate }) => isLate && to - now < ENDING_MS).length);
  }

  const resources = gauge('tagyard_resources', 'Resources of this host’s sites by target and state.', [
    'target',
    'state',
  ]);
  const shown = loop.statuses().flatMap((status) => status.resources);
  for (const [target, ofTarget] of Map.groupBy(shown, (one) => one.target)) {
    for (const [state, some] of Map.groupBy(ofTarget, (one) => one.state)) {
      resources.set({ target, state }, some.length);
    }
  }

  const byStatus = Map.groupBy(operations.all(), ({ status }) => status);
  const remembered = gauge('tagyard_operations', 'Remembered operations by status.', ['status']);
  for (const status of ['queued', 'running', 'succeeded', 'failed'] as const) {
    remembered.set({ status }, byStatus.get(status)?.length ?? 0);
  }
  gauge('tagyard_passes_total', 'Passes that could plan, since the start.').set(loop.passes);
  if (loop.lastPass !== null) {
    gauge(
      'tagyard_last_pass_timestamp_seconds',
      'When the last pass that could plan ended, in seconds since 1970.',
    ).set((now - loop.lastPass.ageMs) / 1000);
    gauge('tagyard_last_pass_seconds', 'How long that pass took.').set(loop.lastPass.tookMs / 1000);
  }
  gauge('tagyard_pass_running_seconds', 'For how long the present pass has been running; 0: none is.').set(
    loop.passRunsMs / 1000,
  );
  gauge('tagyard_last_pass_failed', '1 if the last pass could not plan the newest revision.').set(
    loop.lastError === null ? 0 : 1,
  );
  gauge(
    'tagyard_source_unavailable_seconds',
    'Seconds for which the newest revision has been unreadable; 0 if it can be read.',
  ).set(loop.sourceProblem === null ? 0 : Math.max(1, loop.sourceProblem.seconds));

  const used = gauge('tagyard_quota_used', 'How much of a limit of the zone is used, by anyone.', ['quota']);
  const limit = gauge('tagyard_quota_limit', 'The limit; missing where it is unknown.', ['quota']);
  const near = gauge('tagyard_quota_near', '1 if the quota is near or reached.', ['quota']);
  for (const quota of quotas) {
    used.set({ quota: quota.name }, quota.used);
    if (quota.limit !== null) limit.set({ quota: quota.name }, quota.limit);
    near.set({ quota: quota.name }, quota.state === 'quota_near' || quota.state === 'quota_reached' ? 1 : 0);
  }
  return await registry.metrics();
}
