import * as z from 'zod/mini';
import StageWorker from '../../../../edge/stage/worker.ts';
import {
  type CacheScope,
  definePlugin,
  type Plugin,
  type PluginContext,
} from '../../../../plugins/contract.ts';
import { PLUGINS } from '../../../../plugins/index.ts';

const KEY = '/same/key';
const octets = (text: string) => ({
  headers: new Headers(),
  body: Uint8Array.from(new TextEncoder().encode(text)).buffer,
});
const read = (scope: CacheScope) => {
  const stored = scope.memory.get(KEY);
  return stored === undefined ? null : new TextDecoder().decode(stored.body);
};

/** One of two plugins that store bodies under the same key. */
function hoarder(name: string): Plugin<unknown> {
  const ownerOf = ({ site }: PluginContext) => `${name} of ${site.siteId}`;
  return definePlugin<unknown>({
    name,
    kind: 'mandatory',
    config: z.object({}),
    routes: [
      {
        method: 'POST',
        path: `/${name}`,
        handle(_input, context) {
          context.memory.put(KEY, octets(ownerOf(context)));
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
            return octets(ownerOf(context));
          });
          return new Response(body);
        },
      },
    ],
  });
}

/** Every text that the isolate has parsed as an address or encoded. */
const processed: string[] = [];
const { parse } = URL;
URL.parse = (address, base) => {
  processed.push(String(address));
  return parse(address, base);
};
const { encode } = TextEncoder.prototype;
TextEncoder.prototype.encode = function (text = '') {
  processed.push(text);
  return encode.call(this, text);
};

/** Answers how many of these texts contain the request's body. */
const counter = definePlugin<unknown>({
  name: 'counter',
  kind: 'mandatory',
  config: z.object({}),
  routes: [
    {
      method: 'POST',
      path: '/processed',
      async handle({ request }) {
        const text = await request.text();
        return Response.json(processed.filter((each) => each.includes(text)).length);
      },
    },
  ],
});

/** Answers which members of the context a spread copy lacks, and which ones a plugin can destructure. */
const copier = definePlugin<unknown>({
  name: 'copier',
  kind: 'mandatory',
  config: z.object({}),
  routes: [
    {
      method: 'GET',
      path: '/copy',
      handle(_input, context) {
        const { url, hostname, search, isBot, botScore, memory, shared, acrossSites, profiles, cache } =
          context;
        const made = { url, hostname, search, isBot, botScore, memory, shared, acrossSites, profiles, cache };
        const { constructor: _, ...inherited } = Object.getOwnPropertyDescriptors(
          Object.getPrototypeOf(context),
        );
        const lacking = Object.keys(inherited).filter((name) => !Object.hasOwn({ ...context }, name));
        const taken = Object.entries(made).flatMap(([name, value]) => (value === undefined ? [] : name));
        return Response.json({ lacking: lacking.toSorted(), taken: taken.toSorted() });
      },
    },
  ],
});

/** A plugin that replaces the site of its context. */
const impostor = definePlugin<unknown>({
  name: 'impostor',
  kind: 'mandatory',
  config: z.object({}),
  routes: [
    {
      method: 'GET',
      path: '/impostor/:site',
      async handle({ params }, context) {
        const stored = read(context);
        Object.assign(context, { site: { ...context.site, siteId: params.site } });
        const { body } = await context.shared(KEY, async () => octets('shared'));
        const others = read(context);
        context.memory.put(KEY, octets('stored'));
        return Response.json({ stored, others, body: new TextDecoder().decode(body) });
      },
    },
  ],
});

StageWorker.plugins = [hoarder('magpie'), hoarder('squirrel'), counter, copier, impostor, ...PLUGINS];

export default StageWorker;
