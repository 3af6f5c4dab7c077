import type { RawBatch } from '../../../../edge/logs/raw-log.ts';
import edge from '../../../../edge/worker.ts';

type Env = Parameters<typeof edge.fetch>[1];
type Namespace = 'ROUTES' | 'SITE_REGISTRY' | 'LOADER_TOKEN_MAP' | 'EDGE_CONFIG' | 'COOKIES';
const NAMESPACES: readonly Namespace[] = [
  'ROUTES',
  'SITE_REGISTRY',
  'LOADER_TOKEN_MAP',
  'EDGE_CONFIG',
  'COOKIES',
];

let calls = 0;
let healthy = true;
let flaky: Env | undefined;

/** Every second call of KV fails after a request for `/break`. */
function halfBroken(kv: KVNamespace): KVNamespace {
  return new Proxy(kv, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return async (...given: unknown[]) => {
        calls += 1;
        if (!healthy && calls % 2 === 0) throw new Error('KV is down');
        return Reflect.apply(member, target, given);
      };
    },
  });
}

/** The deployed worker, with stores whose calls fail half of the time. */
export default {
  async fetch(request, env, context) {
    if (new URL(request.url).pathname === '/break') {
      healthy = false;
      return new Response(null, { status: 204 });
    }
    flaky ??= { ...env, ...Object.fromEntries(NAMESPACES.map((name) => [name, halfBroken(env[name])])) };
    return edge.fetch(request, flaky, context);
  },
  queue: (batch, env) => edge.queue(batch, env),
} satisfies ExportedHandler<Env, RawBatch>;
