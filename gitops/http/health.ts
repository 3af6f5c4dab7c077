import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { withinTime } from '../../base/time-limit.ts';
import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import { checkPart, PART_TIMEOUT_MS } from '../report/check-part.ts';
import type { healthSchema, PartCheck } from '../report/report.ts';
import { RUNBOOKS } from '../report/runbooks.ts';
import type { DaemonDeps } from './deps.ts';
import { checkQuotas, shownQuotas } from './quotas.ts';
import { FOR_READERS } from './secrets.ts';

/** Milliseconds. A pass over ten thousand sites takes seconds; one that runs longer than this hangs. */
const MAX_PASS_MS = 120_000;

/** With `settings=true`, the settings are tried, too. */
const querystring = z.looseObject({ settings: z.literal('true').optional() });

/** `GET /health`: checks the parts of this host, each within a time limit (docs/http.md). */
export function healthRoutes(deps: DaemonDeps): FastifyPluginAsyncZod {
  const { repo, reader, loop, checkParts, trySettings } = deps;
  const checkRepo = () =>
    checkPart('sites_repo', {
      fix: 'unread',
      async ask() {
        const head = await repo.head();
        return head === null ? 'it has no commit yet' : `the newest commit is ${head.slice(0, 8)}`;
      },
    });

  /** The applied sites of this host; empty if git can't be read. */
  async function appliedSites(): Promise<LoadedManifest[]> {
    const { revision } = loop;
    if (revision === null) return [];
    const state = await withinTime(PART_TIMEOUT_MS, () => reader.peek(revision)).catch(() => null);
    return [...(state?.sites.values() ?? [])].flatMap(({ manifest }) =>
      manifest?.state === 'present' && loop.status(manifest.site)?.applied != null ? [manifest] : [],
    );
  }

  return async (app) => {
    app.get(
      '/health',
      { ...FOR_READERS, schema: { querystring } },
      async (request): Promise<z.input<typeof healthSchema>> => {
        const sites = await appliedSites();
        const parts = checkParts === undefined ? [] : checkParts(sites);
        const settings = request.query.settings === undefined ? undefined : trySettings?.(sites);
        const [repository, ofHost, ofSettings = []] = await Promise.all([checkRepo(), parts, settings]);
        const quotas = deps.quotas === undefined ? [] : [checkQuotas(shownQuotas(deps))];
        return {
          checks: [
            checkReconciler(loop),
            repository,
            ...quotas,
            ...checkSecrets(sites),
            ...ofHost,
            ...ofSettings,
          ],
        };
      },
    );
  };
}

/** Lists the sites with secrets that a copy in another site's manifest would reveal; nothing: there is none. */
function checkSecrets(sites: readonly LoadedManifest[]): PartCheck[] {
  const free = sites.filter(({ unbound = [] }) => unbound.length > 0).map(({ site }) => site);
  if (free.length === 0) return [];
  const detail = `not bound to their site yet; the next change by the API binds them: ${free.join(', ')}`;
  return [{ name: 'secrets', status: 'passed', detail, fix: null }];
}

/** Checks that passes can plan, and that the running one doesn't hang. */
export function checkReconciler({
  lastError,
  passRunsMs,
  ready,
}: {
  readonly lastError: Error | null;
  readonly passRunsMs: number;
  readonly ready: boolean;
}): PartCheck {
  const name = 'reconciler';
  const { fixes } = RUNBOOKS[name];
  if (passRunsMs > MAX_PASS_MS) {
    return {
      name,
      status: 'failed',
      detail: `a pass has been running for ${Math.round(passRunsMs / 1000)} s, so the conditions of the sites are old`,
      fix: fixes.hangs,
    };
  }
  if (lastError !== null) {
    const detail = `the newest revision could not be planned: ${lastError.message}`;
    return {
      name,
      status: 'failed',
      detail,
      fix: fixes.unplanned,
    };
  }
  if (!ready) {
    const detail = 'no pass has observed everything since the start';
    return {
      name,
      status: 'failed',
      detail,
      fix: fixes.first,
    };
  }
  return { name, status: 'passed', detail: 'passes observe and plan', fix: null };
}
