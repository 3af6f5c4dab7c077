import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { PassPlan } from '../pass/pass.ts';
import type { SiteDiff } from '../report/report.ts';
import type { DaemonDeps } from './deps.ts';
import { ProblemError } from './errors.ts';
import { planReport } from './plan-report.ts';
import { parse } from './request.ts';

const refBody = z.strictObject({ ref: z.string().max(200).optional() });
const applyBody = z.strictObject({ checksum: z.string().max(64).optional() });
const approveBody = z.strictObject({ checksum: z.string().max(64) });

/** What would change, and whether it may. */
export function planRoutes(app: FastifyInstance, deps: DaemonDeps): void {
  const { repo, reader, loop, operations } = deps;

  app.post('/plan', async (request) => {
    const { ref } = parse(refBody, request.body ?? {});
    if (ref === undefined) return planReport(await newestPlan());
    return planReport(await loop.preview(await reader.peek(await revisionOf(ref))));
  });

  /** What the files say at a revision beside what was last applied of them. */
  app.post('/diff', async (request) => {
    const { ref } = parse(refBody, request.body ?? {});
    const revision = await revisionOf(ref);
    const newest = new Map((await repo.read(revision)).map((file) => [file.site, file.text]));
    const { sites: entries } = await reader.peek(revision);
    const applied = new Map(loop.statuses().map(({ site, applied }) => [site, applied]));
    const revisions = new Set([...applied.values()].filter((one) => one !== null));
    const older = new Map<string, ReadonlyMap<string, string>>();
    for (const one of revisions) {
      older.set(one, new Map((await repo.read(one)).map((file) => [file.site, file.text])));
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

  /** Applies the newest revision now: an operation for each site that has something to do. */
  app.post('/apply', async (request, reply) => {
    const { checksum } = parse(applyBody, request.body ?? {});
    const plan = await newestPlan();
    if (checksum !== undefined) mustBe(plan, checksum);
    const { revision } = plan.desired;
    const sites = [...new Set(plan.changes.map(({ site }) => site))].sort();
    const asked = sites.map((site) => {
      const { id } = operations.create(site, 'apply', revision);
      return { site, id, url: `/operations/${id}` };
    });
    loop.sync();
    return reply.status(202).send({ revision, checksum: plan.checksum, operations: asked });
  });

  app.post('/approve', async (request, reply) => {
    const { checksum } = parse(approveBody, request.body);
    const plan = await newestPlan();
    mustBe(plan, checksum);
    loop.approve(plan);
    return reply.status(202).send({ revision: plan.desired.revision, checksum });
  });

  async function newestPlan(): Promise<PassPlan> {
    return await loop.plan(await reader.peek(await revisionOf(undefined)));
  }

  async function revisionOf(ref: string | undefined): Promise<string> {
    const revision = ref === undefined ? await repo.head() : await repo.resolve(ref);
    if (revision !== null) return revision;
    throw new ProblemError('unknown_ref', `the sites repository has no ${ref ?? 'revision yet'}`);
  }
}

function mustBe(plan: PassPlan, checksum: string): void {
  if (plan.checksum === checksum) return;
  throw new ProblemError('checksum_mismatch', `the plan is now ${plan.checksum}; look at it again`);
}
