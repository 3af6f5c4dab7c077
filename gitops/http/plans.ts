import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { PassPlan } from '../pass/pass.ts';
import type { SiteDiff } from '../report/report.ts';
import type { DaemonDeps } from './deps.ts';
import { ProvisionerProblem } from './errors.ts';
import { holdsAfterApproval, planReport } from './plan-report.ts';
import { optionalBody } from './request.ts';
import { FOR_READERS } from './secrets.ts';

const ref = z.string().max(200).optional();
const refBody = optionalBody(z.strictObject({ ref }));
/** `timeout`: seconds after which a target without an answer counts as unobserved. */
const planBody = optionalBody(z.strictObject({ ref, timeout: z.number().min(0.05).max(600).optional() }));
const applyBody = optionalBody(z.strictObject({ checksum: z.string().max(64).optional() }));
const approveBody = z.strictObject({ checksum: z.string().max(64) });

/** Plans, and the orders to apply them. */
export function planRoutes({ repo, reader, loop, operations }: DaemonDeps): FastifyPluginAsyncZod {
  async function newestPlan(observeTimeoutMs?: number): Promise<PassPlan> {
    return await loop.plan(await reader.peek(await revisionOf(undefined)), observeTimeoutMs);
  }

  async function revisionOf(ref: string | undefined): Promise<string> {
    const revision = ref === undefined ? await repo.head() : await repo.resolve(ref);
    if (revision !== null) return revision;
    const detail = `the sites repository has no ${ref ?? 'revision yet'}`;
    throw new ProvisionerProblem('unknown_ref', { detail });
  }

  async function textsAt(revision: string): Promise<Map<string, string>> {
    return new Map((await repo.read(revision)).map((file) => [file.site, file.text]));
  }

  return async (app) => {
    app.post('/plan', { ...FOR_READERS, schema: { body: planBody } }, async ({ body: { ref, timeout } }) => {
      if (ref === undefined) {
        return planReport(await newestPlan(timeout === undefined ? undefined : timeout * 1000));
      }
      return planReport(await loop.preview(await reader.peek(await revisionOf(ref))));
    });

    /** Each file that differs between a revision and the version that was applied last, with both texts. */
    app.post('/diff', { schema: { body: refBody } }, async (request) => {
      const revision = await revisionOf(request.body.ref);
      const newest = await textsAt(revision);
      const { sites: entries } = await reader.peek(revision);
      const applied = new Map(loop.statuses().map(({ site, applied }) => [site, applied]));
      const revisions = new Set([...applied.values()].filter((one) => one !== null));
      const older = new Map<string, ReadonlyMap<string, string>>();
      for (const one of revisions) {
        // After a force-push and a gc, git may no longer have the applied revision. Then its texts are unknown.
        if (await repo.has(one)) older.set(one, await textsAt(one));
      }
      const sites = [...new Set([...entries.keys(), ...applied.keys()])].sort();
      const changed = sites.flatMap((site): SiteDiff[] => {
        const before = older.get(applied.get(site) ?? '')?.get(site) ?? null;
        const after = newest.get(site) ?? null;
        return before === after ? [] : [{ site, before, after }];
      });
      return { revision, sites: changed };
    });

    app.post('/sync', async (_request, reply) => {
      loop.sync();
      return reply.status(202).send({ revision: loop.revision });
    });

    /** Applies the newest revision now, with an operation for each site that has changes. */
    app.post('/apply', { schema: { body: applyBody } }, async (request, reply) => {
      const { checksum } = request.body;
      const plan = await newestPlan();
      if (checksum !== undefined) demandChecksum(plan, checksum);
      const { revision } = plan.desired;
      const sites = [...new Set(plan.changes.map(({ site }) => site))].sort();
      const started = sites.map((site) => {
        const { id } = operations.create(site, 'apply', revision);
        return { site, id, url: `/operations/${id}` };
      });
      loop.sync();
      return reply.status(202).send({ revision, checksum: plan.checksum, operations: started });
    });

    app.post('/approve', { schema: { body: approveBody } }, async (request, reply) => {
      const { checksum } = request.body;
      const plan = await newestPlan();
      demandChecksum(plan, checksum);
      loop.approve(plan);
      const { revision } = plan.desired;
      const approval = { approved: plan.guarded.length, held: holdsAfterApproval(plan) };
      return reply.status(202).send({ revision, checksum, ...approval });
    });
  };
}

function demandChecksum(plan: PassPlan, checksum: string): void {
  if (plan.checksum === checksum) return;
  const detail = `the plan is now ${plan.checksum}; review it again`;
  throw new ProvisionerProblem('checksum_mismatch', { detail });
}
