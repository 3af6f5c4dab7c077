import * as z from 'zod/mini';
import StageWorker from '../../../../edge/stage/worker.ts';
import { definePlugin } from '../../../../plugins/contract.ts';
import { PLUGINS } from '../../../../plugins/index.ts';

/** An answer with the visitor's id in several spellings, a foreign cookie and the site's own cookie. */
function setting(): Response {
  const response = new Response('set');
  const id = 'e'.repeat(32);
  for (const line of [
    `_fpid=${id}; Domain=acme.example`,
    `=_fpid=${id}`,
    'zone=1; Domain=edge.test',
    'own=1; Domain=acme.example',
  ]) {
    response.headers.append('set-cookie', line);
  }
  return response;
}

/** Tries to set the visitor's id by every way that the contract has. */
const setter = definePlugin({
  name: 'setter',
  kind: 'optional',
  flag: 'setter',
  config: z.object({}),
  routes: [
    { method: 'GET', path: '/set', handle: setting },
    { method: 'GET', path: '/before', handle: () => new Response('never') },
    { method: 'GET', path: '/after', handle: () => new Response('set') },
  ],
  dynamic: { owns: (path) => path === '/dynamic', handle: async () => setting() },
  bootMember: 'restoreCookies',
  before: async (request) => (request.url.endsWith('/before') ? setting() : undefined),
  async after(response, request) {
    if (!/\/(?:after|boot)$/.test(request.url)) return response;
    const changed = new Response(response.body, response);
    for (const line of setting().headers.getSetCookie()) changed.headers.append('set-cookie', line);
    return changed;
  },
  async boot(_context, draft) {
    draft.setCookies.push(`_fpid=${'e'.repeat(32)}; Domain=acme.example`, `=_fpid=${'e'.repeat(32)}`);
    return ['_fpid', ' _fpid', '', '\t_fpid '].map((name) => ({
      name,
      value: name === '' ? `_fpid=${'e'.repeat(32)}` : 'e'.repeat(32),
      maxAge: 60,
      domain: 'acme.example',
      path: '/',
      sameSite: 'Lax',
      secure: true,
    }));
  },
});

StageWorker.plugins = [setter, ...PLUGINS];

export default StageWorker;
