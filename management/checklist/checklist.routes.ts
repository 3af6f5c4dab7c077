import { type FastifyPluginAsyncZod, validatorCompiler } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { demandContainer } from '../access/containers.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import { listVerifications } from '../verification/verification.repository.ts';
import { containerParams } from '../view/container-view.ts';
import { dryRunQuery, isDryRun, planAnswer, planOf } from '../view/plan.ts';
import { containerExport } from './container-export.ts';
import { judgeInThread } from './export-threads.ts';
import {
  CHECKLIST,
  CHECKLIST_IDS,
  CHECKLIST_STATES,
  type ChecklistId,
  judgeVerification,
  type PointVerdict,
} from './items.ts';
import { listVerdicts, saveVerdicts } from './verdicts.repository.ts';

/** Exports of big containers have five megabytes, most of them templates. */
const BODY_LIMIT = 8 * 1024 * 1024;
const UNKNOWN = {
  verification: 'not checked yet: verify the container',
  export: 'not checked yet: upload the export of the container (server or web) that this point is about',
};
/** The points that a verification shows; an export shows the others. */
const VERIFIED: readonly ChecklistId[] = ['server_container', 'published'];

const checklist = z
  .object({
    items: z.array(
      z.object({
        id: z.enum(CHECKLIST_IDS),
        title: z.string(),
        where: z.string().meta({ description: 'where to click in Tag Manager' }),
        state: z.enum(CHECKLIST_STATES),
        detail: z.string(),
        by: z.enum(['verification', 'export']).meta({ description: 'what shows the state' }),
        checkedAt: z.iso.datetime().nullable(),
      }),
    ),
  })
  .meta({ id: 'Checklist', description: 'what to do in Tag Manager, in this order, and whether it is done' });

interface Known extends Omit<PointVerdict, 'id'> {
  readonly at: Date;
}

/** What is set up in Tag Manager: from the last verification, and from exports that people upload. */
export function checklistRoutes(context: Context): FastifyPluginAsyncZod {
  const { db, clock } = context;
  const tags = ['containers'];

  async function checklistOf(container: string): Promise<z.output<typeof checklist>> {
    const [verification] = await listVerifications(db, container);
    const known = new Map<ChecklistId, Known>();
    if (verification !== undefined) {
      const at = new Date(verification.checkedAt);
      for (const { id, ...verdict } of judgeVerification(verification.checks))
        known.set(id, { ...verdict, at });
    }
    for (const { item, state, detail, checked_at } of await listVerdicts(db, container)) {
      known.set(item, { state, detail, at: checked_at });
    }
    return {
      items: CHECKLIST_IDS.map((id) => {
        const by = VERIFIED.includes(id) ? 'verification' : 'export';
        const { state = 'unknown', detail = UNKNOWN[by], at } = known.get(id) ?? {};
        return { id, ...CHECKLIST[id], state, detail, by, checkedAt: at?.toISOString() ?? null };
      }),
    };
  }

  return async (app) => {
    app.get(
      '/server-containers/:id/checklist',
      {
        config: { access: 'read' },
        schema: {
          operationId: 'getChecklist',
          summary: 'Read what is set up in Tag Manager for a container, and where to click for the rest',
          tags,
          params: containerParams,
          response: { 200: checklist, ...problems('invalid_request', 'unknown_container') },
        },
      },
      async (request) => {
        const { id } = await demandContainer(db, request.params.id, callerOf(request), 'read');
        return await checklistOf(id);
      },
    );

    // The body stays a text: another thread parses and validates it.
    app.removeContentTypeParser('application/json');
    app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (_request, body, done) =>
      done(null, body === '' ? undefined : body),
    );
    app.setValidatorCompiler<z.ZodType>((route) =>
      route.httpPart === 'body' ? (value: unknown) => ({ value }) : validatorCompiler(route),
    );
    app.post(
      '/server-containers/:id/checklist/export',
      {
        bodyLimit: BODY_LIMIT,
        config: { access: 'edit' },
        schema: {
          operationId: 'checkContainerExport',
          summary: 'Check the export of a web or server container of Tag Manager against a container',
          description: 'At most 8 MiB. Only the verdicts are kept, and nothing of the export’s content.',
          tags,
          params: containerParams,
          querystring: dryRunQuery,
          body: containerExport,
          response: {
            200: z.union([checklist, planAnswer]),
            ...problems('invalid_request', 'forbidden', 'unknown_container', 'body_too_large'),
          },
        },
      },
      async (request) => {
        const { id, manifest } = await demandContainer(db, request.params.id, callerOf(request), 'edit');
        const { hostnames, customDomains, domains, unproven } = manifest;
        const site = { hostnames, customDomains, domains, ...(unproven === undefined ? {} : { unproven }) };
        const verdicts = await judgeInThread({ text: request.body as unknown as string, site }); // as the parser above leaves it
        if (verdicts.length === 0) {
          const message = 'must be a web or a server container';
          const errors = [{ path: 'containerVersion.container.usageContext', message }];
          throw new ManagementProblem('invalid_request', { detail: `the export ${message}`, errors });
        }
        if (isDryRun(request.query)) {
          const { items } = await checklistOf(id);
          const shown = (all: readonly PointVerdict[]) =>
            all.map(({ id: item, state }) => ({ id: item, state }));
          const before = items.filter((item) => verdicts.some((verdict) => verdict.id === item.id));
          const sorted = before.flatMap((item) => verdicts.filter((verdict) => verdict.id === item.id));
          return { plan: planOf({ items: shown(before) }, { items: shown(sorted) }) };
        }
        await saveVerdicts(db, id, verdicts, clock.date());
        return await checklistOf(id);
      },
    );
  };
}
