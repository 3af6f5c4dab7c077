import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import { type QuotaStatus, type quotasSchema, statusOf } from '../report/quotas.ts';
import type { PartCheck } from '../report/report.ts';
import type { DaemonDeps } from './deps.ts';
import { FOR_READERS } from './secrets.ts';

/** The quotas that were observed, with their states. */
export function shownQuotas({ quotas, loop }: Pick<DaemonDeps, 'quotas' | 'loop'>): QuotaStatus[] {
  const sites = loop.statuses();
  return (quotas?.() ?? []).map((quota) => statusOf(quota, sites));
}

/** `GET /quotas`: whether another site fits (docs/http.md). */
export function quotaRoutes(deps: DaemonDeps): FastifyPluginAsyncZod {
  return async (app) => {
    app.get(
      '/quotas',
      FOR_READERS,
      async (): Promise<z.input<typeof quotasSchema>> => ({ quotas: shownQuotas(deps) }),
    );
  };
}

/** The quotas as a check: it fails while one is near or reached, or counts things that serve no site. */
export function checkQuotas(quotas: readonly QuotaStatus[]): PartCheck {
  const name = 'quotas';
  const detail = quotas
    .map(({ state, message }) => (state.startsWith('quota') ? `${state}: ${message}` : message))
    .join('; ');
  const fixes = quotas.flatMap(({ fix }) => fix ?? []);
  if (fixes.length > 0) return { name, status: 'failed', detail, fix: fixes.join(' ') };
  const isKnown = quotas.length > 0 && quotas.every(({ state }) => state !== 'unknown');
  if (isKnown) return { name, status: 'passed', detail, fix: null };
  return { name, status: 'skipped', detail: detail || 'nothing was observed yet', fix: null };
}
