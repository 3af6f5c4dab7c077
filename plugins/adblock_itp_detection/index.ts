import * as z from 'zod/mini';
import { consentChoices, definePlugin, defineRoute, type PluginContext } from '../contract.ts';
import { config } from './config.ts';
import pageScript from './page/detect.ts?page';

const MAX_SIGNALS = 20;
const SIGNAL = /^[a-z][a-z0-9_]{0,31}$/;

/** Where a tag server takes signals, unless the deployment's `DETECTION_PATH` says another path. */
const RECEIVER = '/tagyard/detection';

const detection = z.object({
  loader: z.string(),
  session: z.object({ id: z.string().check(z.regex(/^[0-9a-f]{32}$/)) }),
  signals: z.catchall(z.object({}), z.boolean()),
  consent: consentChoices,
});

async function forward(context: PluginContext, body: string): Promise<void> {
  const response = await context.fetchOrigin(context.variables.DETECTION_PATH || RECEIVER, {
    method: 'POST',
    headers: new Headers({ 'content-type': 'application/json' }),
    body,
  });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`the receiver of signals answered ${response.status}`);
}

/** A page under `cross-origin-embedder-policy: require-corp` refuses answers that don't say so, and would look blocked. */
const BAIT_HEADERS = { 'cache-control': 'no-store', 'cross-origin-resource-policy': 'cross-origin' };

const accepted = (forwarded: boolean) => Response.json({ forwarded }, { status: 202 });

/**
 * Takes what the page's own script could tell about blockers and shortened cookies, counts it in the log and hands
 * it to the site's tag server. It measures and disguises nothing. Where the person allows no id (`Sec-GPC: 1`, both
 * purposes denied, or none granted on a site that requires it), nothing leaves the edge and the answer says so: a
 * session is an id, too. The count in the log, which names nobody, stays.
 */
export default definePlugin({
  name: 'adblock_itp_detection',
  kind: 'mandatory',
  config,
  variables: ['DETECTION_PATH'],
  pageScript,
  routes: [
    defineRoute({
      method: 'POST',
      path: '/mark-session-detection',
      cors: true,
      body: detection,
      whenOff: () => accepted(false),
      async handle({ body: { loader, session, signals, consent } }, context) {
        const names = Object.keys(signals);
        if (names.length > MAX_SIGNALS || !names.every((name) => SIGNAL.test(name))) {
          throw context.problem(
            'malformed_request',
            `signals: at most ${MAX_SIGNALS}, named like bait_hidden`,
          );
        }
        if (!(await context.ownsLoader(loader))) throw context.problem('unknown_loader');
        context.log({ signals });
        if (!context.consent(consent ?? {}).identify) return accepted(false);
        const { siteId: site } = context.site;
        const at = new Date(context.now()).toISOString();
        // A receiver that fails or is slow is no concern of the page.
        context.waitUntil(forward(context, JSON.stringify({ site, session, signals, at })));
        return accepted(true);
      },
    }),
    {
      // The lists of blockers know the address; whoever gets this answer isn't blocked.
      method: 'GET',
      path: '/bait/gtm.js',
      handle: () => new Response(null, { status: 204, headers: BAIT_HEADERS }),
    },
  ],
});
