import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { EmulatorContext } from '../api/context.ts';
import { ApiError, success } from '../api/envelope.ts';

const scriptParams = z.object({ script_name: z.string() });

/** `/accounts/{account_id}/workers/scripts/{script_name}/settings` and `…/script-settings`, read only. */
export function scriptEndpoints(
  app: FastifyInstance,
  { account, scripts, worker }: Pick<EmulatorContext, 'account' | 'scripts' | 'worker'>,
): void {
  const path = '/accounts/:account_id/workers/scripts/:script_name';
  function check(params: unknown): void {
    account(params);
    if (!scripts.includes(scriptParams.parse(params).script_name)) {
      throw new ApiError('unknownScript', 'workers.api.error.script_not_found');
    }
  }
  const common = { logpush: false, tags: [], tail_consumers: null, ...worker.settings };

  app.get(`${path}/settings`, ({ params }) => {
    check(params);
    const { bindings, compatibilityDate } = worker;
    return success({
      ...common,
      bindings,
      compatibility_date: compatibilityDate,
      compatibility_flags: [],
      placement: {},
      usage_model: 'standard',
    });
  });
  app.get(`${path}/script-settings`, ({ params }) => {
    check(params);
    return success(common);
  });
}
