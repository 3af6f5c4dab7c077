import { definePlugin } from '../contract.ts';
import { config } from './config.ts';
import { deviceOf } from './device.ts';

/** The longest user agent that is read. Browsers' have about 200 characters. */
const MAX_AGENT = 512;

/** Tells the tag server the visitor's kind of device, system and browser. */
export default definePlugin({
  name: 'user_agent_headers',
  kind: 'optional',
  flag: 'user_agent_headers',
  config,
  routes: [],
  async before(request, { tellTagServer, count }, { forwards }) {
    const agent = request.headers.get('user-agent');
    if (!forwards || !agent) return undefined;
    const { type, os, browser, version } = deviceOf(agent.slice(0, MAX_AGENT));
    count(browser === undefined ? 'unknown' : 'told');
    tellTagServer({
      headers: {
        'x-device-type': type,
        ...(os && { 'x-device-os': os }),
        ...(browser && { 'x-device-browser': browser }),
        ...(version && { 'x-device-browser-version': version }),
      },
    });
    return undefined;
  },
});
