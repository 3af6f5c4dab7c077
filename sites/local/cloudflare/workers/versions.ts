import type { FastifyInstance } from 'fastify';
import type { EmulatorContext } from '../api/context.ts';
import { ApiError, success } from '../api/envelope.ts';
import type { Version } from '../api/script-store.ts';
import { deploymentInput } from '../api/worker-schemas.ts';
import { SCRIPT_PATH, scriptName, storeUpload } from './scripts.ts';
import { readUpload, shownBindings } from './upload.ts';

const AUTHOR = 'local@tagyard.localhost';

function describe({ id, number, created_on, source, annotations = {} }: Version) {
  const metadata = {
    author_email: AUTHOR,
    author_id: 'local',
    created_on,
    modified_on: created_on,
    hasPreview: false,
    source,
  };
  return { id, number, metadata, annotations };
}

function describeWhole(version: Version) {
  const { etag, source, compatibility_date, compatibility_flags = [], usage_model = 'standard' } = version;
  return {
    ...describe(version),
    startup_time_ms: 1,
    resources: {
      bindings: shownBindings(version.bindings ?? []),
      script: { etag, handlers: ['fetch'], last_deployed_from: source },
      script_runtime: { compatibility_date, compatibility_flags, usage_model },
    },
  };
}

/** `…/workers/scripts/{script_name}/versions` and `…/deployments`. */
export function versionEndpoints(app: FastifyInstance, context: EmulatorContext): void {
  const { scripts } = context;
  type OneVersion = { Params: { version_id: string } };
  type OneDeployment = { Params: { deployment_id: string } };

  app.get(`${SCRIPT_PATH}/versions`, ({ params }) => {
    const items = scripts.versions(scriptName(context, params)).map(describe);
    return success(
      { items },
      { page: 1, per_page: items.length, count: items.length, total_count: items.length },
    );
  });
  app.post(`${SCRIPT_PATH}/versions`, async ({ params, body, headers }) => {
    const name = scriptName(context, params);
    return success(
      describeWhole(storeUpload(context, name, await readUpload(body, headers['content-type'] ?? ''))),
    );
  });
  app.get<OneVersion>(`${SCRIPT_PATH}/versions/:version_id`, ({ params }) => {
    const found = scripts.versions(scriptName(context, params)).find(({ id }) => id === params.version_id);
    if (found === undefined) throw new ApiError('unknownVersion', 'Worker version not found.');
    return success(describeWhole(found));
  });

  const shown = (name: string) =>
    scripts.deployments(name).map((deployment) => ({ ...deployment, author_email: AUTHOR }));
  app.get(`${SCRIPT_PATH}/deployments`, ({ params }) =>
    success({ deployments: shown(scriptName(context, params)) }),
  );
  app.post(`${SCRIPT_PATH}/deployments`, ({ params, body }) => {
    const name = scriptName(context, params);
    const parsed = deploymentInput.safeParse(body);
    if (!parsed.success) throw new ApiError('invalidDeployment', 'Invalid deployment: malformed request.');
    const { versions } = parsed.data;
    const known = new Set(scripts.versions(name).map(({ id }) => id));
    if (versions.some(({ version_id: id }) => !known.has(id))) {
      throw new ApiError('unknownVersion', 'Worker version not found.');
    }
    if (versions.reduce((sum, { percentage }) => sum + percentage, 0) !== 100) {
      throw new ApiError('invalidDeployment', 'Invalid deployment: the percentages must be 100 together.');
    }
    return success({ ...scripts.deploy(name, parsed.data, 'api'), author_email: AUTHOR });
  });
  app.get<OneDeployment>(`${SCRIPT_PATH}/deployments/:deployment_id`, ({ params }) => {
    const found = shown(scriptName(context, params)).find(({ id }) => id === params.deployment_id);
    if (found === undefined) throw new ApiError('unknownDeployment', 'Deployment not found.');
    return success(found);
  });
}
