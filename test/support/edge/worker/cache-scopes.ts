import { definePlugin, type Plugin, type PluginContext, type Shelf } from '../../../../plugins/contract.ts';
import { config } from '../../../../plugins/server_proxy/config.ts';
import TestWorker from './worker.ts';

const KEY = '/same/key';
const octets = (text: string) => ({
  headers: new Headers(),
  body: Uint8Array.from(new TextEncoder().encode(text)).buffer,
});
const read = (shelf: Shelf) => {
  const held = shelf.memory.get(KEY);
  return held === undefined ? null : new TextDecoder().decode(held.body);
};

/** One that keeps things under the same keys as every other of its kind. */
function hoarder(name: string): Plugin<unknown> {
  const whose = ({ site }: PluginContext) => `${name} of ${site.siteId}`;
  return definePlugin<unknown>({
    name,
    kind: 'mandatory',
    config,
    routes: [
      {
        method: 'POST',
        path: `/${name}`,
        handle(_input, context) {
          context.memory.put(KEY, octets(whose(context)));
          context.acrossSites.memory.put(KEY, octets(name));
          return new Response(null, { status: 204 });
        },
      },
      {
        method: 'GET',
        path: `/${name}`,
        handle: (_input, context) =>
          Response.json({ own: read(context), acrossSites: read(context.acrossSites) }),
      },
      {
        method: 'GET',
        path: `/${name}/run`,
        async handle(_input, context) {
          const { body } = await context.shared(KEY, async () => {
            await (await context.fetch(`${context.vendor}/${name}`)).body?.cancel();
            return octets(whose(context));
          });
          return new Response(body);
        },
      },
    ],
  });
}

TestWorker.plugins = [hoarder('magpie'), hoarder('squirrel')];

export default TestWorker;
