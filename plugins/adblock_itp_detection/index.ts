import * as z from 'zod/mini';
import { consentChoices } from '../consent.ts';
import { definePlugin, defineRoute, type PluginContext } from '../contract.ts';
import { BAIT_PATH, config, DETECTION_PATH } from './config.ts';
import pageScript from './page/detect.ts?page';

const MAX_SIGNALS = 20;
const SIGNAL = /^[a-z][a-z0-9_]{0,31}$/;
const SESSION_ID = /^[0-9a-f]{32}$/;
/**
 * The signals of the page script (page/detect.ts). The log counts any other name as `other`, because anyone can send
 * any name.
 */
const RECORDED = /^(adblock|bait_hidden|tag_stubbed|tag_blocked|itp|itp_measured|id_capped|bait_blocked)$/;

/** The tag server's path for signals, unless the deployment's variable `DETECTION_PATH` names another. */
const RECEIVER_PATH = '/tagyard/detection';

const detection = z.object({
  loader: z.string(),
  session: z.object({ id: z.string() }),
  signals: z.catchall(z.object({}), z.boolean()),
  consent: consentChoices,
});

async function forward(context: PluginContext, body: string): Promise<void> {
  const response = await context.fetchOrigin(context.variables.DETECTION_PATH || RECEIVER_PATH, {
    method: 'POST',
    headers: new Headers({ 'content-type': 'application/json' }),
    body,
  });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`the receiver of signals answered ${response.status}`);
}

/** Without the second header, a page under `cross-origin-embedder-policy: require-corp` would refuse the answer. */
const BAIT_HEADERS = { 'cache-control': 'no-store', 'cross-origin-resource-policy': 'cross-origin' };

const accepted = (forwarded: boolean) => Response.json({ forwarded }, { status: 202 });

/**
 * Receives the page script's signals about blockers and shortened cookie lifetimes, counts them in the log and forwards
 * them to the site's tag server. If the visitor allows no analytics (`Sec-GPC: 1`, denied, or not granted where a
 * grant is needed), it still logs the anonymous count. But it forwards nothing (the answer says so), because
 * a session id is also an id.
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
      path: DETECTION_PATH,
      cors: true,
      body: detection,
      whenOff: () => accepted(false),
      async handle({ body: { loader, session, signals, consent } }, context) {
        const names = Object.keys(signals);
        if (
          !SESSION_ID.test(session.id) ||
          names.length > MAX_SIGNALS ||
          !names.every((name) => SIGNAL.test(name))
        ) {
          throw context.problem(
            'malformed_request',
            `signals must have at most ${MAX_SIGNALS} names like bait_hidden, and session.id 32 hex digits`,
          );
        }
        if (!(await context.ownsLoader(loader))) throw context.problem('unknown_loader');
        const recorded: Record<string, boolean> = {};
        for (const [name, on] of Object.entries(signals)) {
          const key = RECORDED.test(name) ? name : 'other';
          recorded[key] ||= on;
        }
        const { state, analytics } = context.consent(consent ?? {});
        context.log({ signals: recorded, consent: state });
        if (context.isBot || !analytics) return accepted(false);
        // EDGE_CONFIG may forbid forwarding the signals, so wait for it if it is late. This delays no page: none waits
        // for this answer.
        if (!(await context.isConfirmed())) return accepted(false);
        const { siteId: site } = context.site;
        const at = new Date(context.now()).toISOString();
        // In the background: the page does not wait for the tag server.
        context.waitUntil(forward(context, JSON.stringify({ site, session, signals, at })));
        return accepted(true);
      },
    }),
    {
      // Common blocking lists contain this URL: if a page gets the answer, nothing blocks its requests.
      method: 'GET',
      path: BAIT_PATH,
      handle: () => new Response(null, { status: 204, headers: BAIT_HEADERS }),
    },
  ],
});
