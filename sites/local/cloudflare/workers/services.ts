import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { EmulatorContext } from '../api/context.ts';
import { ApiError, success } from '../api/envelope.ts';
import type { Binding } from '../api/worker-schemas.ts';
import { SCRIPT_PATH, scriptName } from './scripts.ts';

const subdomain = z.object({ enabled: z.boolean(), previews_enabled: z.boolean().optional() });
const secret = z.object({ name: z.string().min(1), text: z.string(), type: z.literal('secret_text') });

/** What `wrangler deploy` and `wrangler secret` request besides scripts: services, workers.dev and secrets. */
export function serviceEndpoints(app: FastifyInstance, context: EmulatorContext): void {
  const { scripts } = context;

  app.get('/accounts/:account_id/workers/services/:script_name', ({ params }) => {
    const name = scriptName(context, params);
    const [newest] = scripts.versions(name);
    const script = {
      id: name,
      tag: newest?.etag.slice(0, 32),
      tags: scripts.find(name)?.settings.tags ?? [],
      etag: newest?.etag,
      last_deployed_from: newest?.source,
      created_on: scripts.find(name)?.createdOn,
      modified_on: newest?.created_on,
    };
    return success({
      id: name,
      default_environment: { environment: 'production', script },
      environments: [],
    });
  });

  // There is no workers.dev on one machine.
  const isOff = { enabled: false, previews_enabled: false };
  app.get(`${SCRIPT_PATH}/subdomain`, ({ params }) => {
    scriptName(context, params);
    return success(isOff);
  });
  app.post(`${SCRIPT_PATH}/subdomain`, ({ params, body }) => {
    scriptName(context, params);
    const { data } = subdomain.safeParse(body);
    if (data === undefined) throw new ApiError('malformedBody', 'enabled is missing.');
    if (data.enabled || data.previews_enabled === true) {
      throw new ApiError('noSubdomain', 'A workers.dev subdomain is required.');
    }
    return success(isOff);
  });

  /** A new version of a script with other bindings, deployed immediately. */
  function rebind(name: string, change: (bindings: readonly Binding[]) => Binding[]): void {
    const [newest] = scripts.versions(name);
    if (newest === undefined) throw new ApiError('unknownVersion', 'The Worker has no version.');
    const { id: _id, number: _number, created_on: _created, annotations: _old, ...kept } = newest;
    const { id } = scripts.addVersion(name, { ...kept, bindings: change(kept.bindings ?? []) });
    scripts.deploy(
      name,
      { strategy: 'percentage', versions: [{ version_id: id, percentage: 100 }] },
      'secret',
    );
  }
  const secretsOf = (name: string) =>
    (scripts.versions(name)[0]?.bindings ?? [])
      .filter(({ type }) => type === 'secret_text')
      .map(({ name: key, type }) => ({ name: key, type }));

  app.get(`${SCRIPT_PATH}/secrets`, ({ params }) => success(secretsOf(scriptName(context, params))));
  app.put(`${SCRIPT_PATH}/secrets`, ({ params, body }) => {
    const name = scriptName(context, params);
    const { data } = secret.safeParse(body);
    if (data === undefined) throw new ApiError('malformedBody', 'A secret needs a name, a text and a type.');
    rebind(name, (bindings) => [...bindings.filter((other) => other.name !== data.name), data]);
    return success({ name: data.name, type: data.type });
  });
  app.delete<{ Params: { secret_name: string } }>(`${SCRIPT_PATH}/secrets/:secret_name`, ({ params }) => {
    const name = scriptName(context, params);
    if (!secretsOf(name).some((known) => known.name === params.secret_name)) {
      throw new ApiError('unknownBinding', `Binding ${params.secret_name} not found.`);
    }
    rebind(name, (bindings) => bindings.filter((other) => other.name !== params.secret_name));
    return success(null);
  });
}
