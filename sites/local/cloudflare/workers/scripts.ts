import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { EmulatorContext } from '../api/context.ts';
import { ApiError, success } from '../api/envelope.ts';
import type { Version } from '../api/script-store.ts';
import { listNamespaces } from '../api/state.ts';
import { type Binding, scriptSettings, versionSettings } from '../api/worker-schemas.ts';
import { formOf, jsonPart, nextBindings, readUpload, shownBindings, type Upload } from './upload.ts';

export const SCRIPT_PATH = '/accounts/:account_id/workers/scripts/:script_name';
const scriptParams = z.object({ script_name: z.string() });
const SCRIPT_NAME = /^[a-z0-9_][a-z0-9_-]{0,62}$/;

/** The script's name in a path. Throws the API's error if there is no such script. */
export function scriptName({ account, scripts }: EmulatorContext, params: unknown): string {
  account(params);
  const { script_name: name } = scriptParams.parse(params);
  if (scripts.find(name) === null) {
    throw new ApiError('unknownScript', 'This Worker does not exist on your account.');
  }
  return name;
}

/** Stores an upload as the newest version; the script settings that it names apply to all versions. */
export function storeUpload(
  { db, scripts }: EmulatorContext,
  name: string,
  { metadata, etag, size }: Upload,
): Version {
  const { keep_bindings: kept, main_module: main = null, body_part: _body, ...rest } = metadata;
  const { logpush, observability, tags, tail_consumers, ...version } = rest;
  const current = scripts.versions(name)[0]?.bindings ?? [];
  const bindings = nextBindings(metadata.bindings ?? [], current, kept);
  refuseUnknownNamespaces(bindings, new Set(listNamespaces(db).map(({ id }) => id)));
  scripts.update(name, { logpush, observability, tags, tail_consumers });
  return scripts.addVersion(name, { ...version, bindings, main, etag, size, source: 'api' });
}

function refuseUnknownNamespaces(bindings: readonly Binding[], known: ReadonlySet<unknown>): void {
  const lost = bindings.find(({ type, namespace_id: id }) => type === 'kv_namespace' && !known.has(id));
  if (lost !== undefined) {
    throw new ApiError('unknownBoundNamespace', `KV namespace ${String(lost.namespace_id)} not found.`);
  }
}

/** `/accounts/{account_id}/workers/scripts`: upload, list, delete, and the settings of a script and of its versions. */
export function scriptEndpoints(app: FastifyInstance, context: EmulatorContext): void {
  const { scripts, account } = context;
  const path = SCRIPT_PATH;

  function describe(name: string) {
    const [newest] = scripts.versions(name);
    const found = scripts.find(name);
    return {
      id: name,
      tag: newest?.etag.slice(0, 32),
      etag: newest?.etag,
      handlers: ['fetch'],
      has_assets: false,
      has_modules: newest !== undefined && newest.main !== null,
      created_on: found?.createdOn,
      modified_on: newest?.created_on ?? found?.createdOn,
      last_deployed_from: newest?.source,
      compatibility_date: newest?.compatibility_date,
      compatibility_flags: newest?.compatibility_flags ?? [],
      usage_model: newest?.usage_model ?? 'standard',
      ...shownSettings(name),
    };
  }
  const shownSettings = (name: string) => ({
    logpush: false,
    tags: [],
    tail_consumers: null,
    ...scripts.find(name)?.settings,
  });

  app.get('/accounts/:account_id/workers/scripts', ({ params }) => {
    account(params);
    return success(scripts.names().map(describe));
  });
  app.put(path, async ({ params, body, headers }) => {
    account(params);
    const { script_name: name } = scriptParams.parse(params);
    if (!SCRIPT_NAME.test(name)) throw new ApiError('invalidScriptName', `Invalid Worker name ${name}.`);
    const version = storeUpload(context, name, await readUpload(body, headers['content-type'] ?? ''));
    const versions = [{ version_id: version.id, percentage: 100 }];
    const { annotations } = version;
    scripts.deploy(
      name,
      { strategy: 'percentage', versions, ...(annotations === undefined ? {} : { annotations }) },
      'api',
    );
    // Clients show the answer's `deployment_id` as the version's id.
    const deployment = version.id.replaceAll('-', '');
    return success({ ...describe(name), deployment_id: deployment, startup_time_ms: 1 });
  });
  app.delete(path, ({ params }) => {
    scripts.remove(scriptName(context, params));
    return success(null);
  });

  app.get(`${path}/settings`, ({ params }) => success(versionAnswer(scriptName(context, params))));
  app.patch(`${path}/settings`, async ({ params, body, headers }) => {
    const name = scriptName(context, params);
    const form = await formOf(body, headers['content-type'] ?? '');
    const patch = await jsonPart(form, 'settings', versionSettings.extend(scriptSettings.shape));
    const [newest] = scripts.versions(name);
    if (newest === undefined) throw new ApiError('unknownVersion', 'The Worker has no version.');
    const { id: _id, number: _number, created_on: _created, annotations: _old, ...kept } = newest;
    const { logpush, observability, tags, tail_consumers, bindings, ...changes } = patch;
    const next = bindings === undefined ? kept.bindings : nextBindings(bindings, kept.bindings ?? []);
    scripts.update(name, { logpush, observability, tags, tail_consumers });
    const added = scripts.addVersion(name, { ...kept, ...changes, ...(next && { bindings: next }) });
    const versions = [{ version_id: added.id, percentage: 100 }];
    scripts.deploy(name, { strategy: 'percentage', versions }, 'api');
    return success(versionAnswer(name));
  });
  function versionAnswer(name: string) {
    const [newest] = scripts.versions(name);
    return {
      ...shownSettings(name),
      bindings: shownBindings(newest?.bindings ?? []),
      compatibility_date: newest?.compatibility_date,
      compatibility_flags: newest?.compatibility_flags ?? [],
      placement: newest?.placement ?? {},
      usage_model: newest?.usage_model ?? 'standard',
    };
  }

  app.get(`${path}/script-settings`, ({ params }) => success(shownSettings(scriptName(context, params))));
  app.patch(`${path}/script-settings`, ({ params, body }) => {
    const name = scriptName(context, params);
    const parsed = scriptSettings.safeParse(body);
    if (!parsed.success) throw new ApiError('malformedBody', 'Invalid settings.');
    scripts.update(name, parsed.data);
    return success(shownSettings(name));
  });
}
