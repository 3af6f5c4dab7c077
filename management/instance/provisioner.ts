import { z } from 'zod';
import { quotasSchema } from '../../gitops/report/quotas.ts';
import {
  approvalSchema,
  certificateSchema,
  healthSchema,
  planReportSchema,
  shownSiteSchema,
} from '../../gitops/report/report.ts';
import { ProvisionerError } from '../clients/provisioner-client.ts';
import type { Context } from '../context/context.ts';
import { type ManagementErrorCode, ManagementProblem } from '../http/errors.ts';

/** A plan observes every target, which may take this long (milliseconds). */
const PLAN_MS = 60_000;
const HEALTH_MS = 10_000;

const stateSchema = z.object({
  revision: z.string().nullable(),
  problem: z.string().nullable().default(null),
  source: z.object({ since: z.string(), seconds: z.number(), message: z.string() }).nullable().default(null),
  quotas: quotasSchema.shape.quotas.catch([]),
  sites: z.array(z.object({ site: z.string(), reason: z.string() })),
});

const certificatesSchema = z.object({
  sites: z.array(z.object({ site: z.string(), resources: z.array(z.looseObject({})).default([]) })),
});

/** The provisioner's error codes that have an equivalent in management. */
const CODES: Readonly<Record<string, ManagementErrorCode>> = {
  unknown_ref: 'unknown_ref',
  unknown_site: 'unknown_container',
  checksum_mismatch: 'plan_changed',
};

/** The provisioner's state, plans and approvals. Its errors are thrown as problems of management. */
export function instanceOf({ provisioner }: Pick<Context, 'provisioner'>, requestId: string) {
  const context = { requestId };
  async function asked<Answer>(ask: Promise<Answer>): Promise<Answer> {
    try {
      return await ask;
    } catch (cause) {
      if (cause instanceof z.ZodError) {
        const detail =
          'the provisioner’s answer is of another release: update management and provisioner together';
        throw new ManagementProblem('host_unavailable', { detail, cause });
      }
      if (!(cause instanceof ProvisionerError)) throw cause;
      const code = cause.code === undefined ? undefined : CODES[cause.code];
      throw new ManagementProblem(code ?? 'host_unavailable', { detail: cause.message, cause });
    }
  }
  const read = <Schema extends z.ZodType>(schema: Schema, path: string, timeoutMs?: number) =>
    asked(provisioner.ask(schema, { method: 'GET', path, context, ...(timeoutMs && { timeoutMs }) }));
  const post = <Schema extends z.ZodType>(schema: Schema, path: string, body: object) =>
    asked(provisioner.ask(schema, { method: 'POST', path, context, body, timeoutMs: PLAN_MS }));
  return {
    state: () => read(stateSchema, '/sites'),
    certificates: async () => {
      const { sites } = await read(certificatesSchema, '/sites');
      return sites.flatMap(({ site, resources }) =>
        resources.flatMap((one) => {
          const { success, data } = certificateSchema.safeParse(one);
          return success && data.notAfter !== null ? [{ site, ...data, notAfter: data.notAfter }] : [];
        }),
      );
    },
    health: () => read(healthSchema, '/health', HEALTH_MS),
    site: (site: string) => read(shownSiteSchema, `/sites/${encodeURIComponent(site)}`),
    plan: (ref: string | null) => post(planReportSchema, '/plan', ref === null ? {} : { ref }),
    approve: (checksum: string) => post(approvalSchema, '/approve', { checksum }),
  };
}
