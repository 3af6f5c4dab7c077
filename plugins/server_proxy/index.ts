import * as z from 'zod/mini';
import { definePlugin, type PluginContext, type RouteInput } from '../contract.ts';
import { TAG_SERVER_PATHS } from './paths.ts';
import { vendorScriptRoute } from './vendor-script.ts';

/** Hands a request on to the site's tag server as it came: method, raw path and query, body and cookies. */
function proxy({ request }: RouteInput, context: PluginContext): Promise<Response> {
  const { origin } = new URL(request.url);
  return context.fetchOrigin(request.url.slice(origin.length), {
    method: request.method,
    headers: request.headers,
    body: request.body,
  });
}

/** The tag server's own paths at the site's edge, and the vendor's web container script. Never an open proxy. */
export default definePlugin({
  name: 'server_proxy',
  kind: 'mandatory',
  // The manifest's reader checks its paths (config.ts), and they come here in the registry: nothing is left to parse.
  config: z.looseObject({}),
  routes: [
    vendorScriptRoute,
    ...TAG_SERVER_PATHS.map((path) => ({ method: 'ALL' as const, path, handle: proxy })),
  ],
  dynamic: {
    owns: (path, site) => site.proxyPaths.includes(path),
    handle: proxy,
  },
});
