import { WorkerEntrypoint } from 'cloudflare:workers';
import type { ControlCall } from './control-call.ts';
import type Front from './worker.ts';

interface ControlEnv {
  /** Chosen anew at each start, because every process of the machine reaches the runtime's socket. */
  readonly CONTROL_SECRET: string;
  readonly FRONT: Service<Front>;
  readonly RAW_LOGS: R2Bucket;
  readonly [namespace: string]: unknown;
}

/**
 * What the process that started the runtime does in it: reads and writes KV, reads and rewrites the archive, sets the
 * routes. Miniflare's own stubs do the same, but their first calls block that process and start a thread, at a cost of
 * 0.4 s and 25 MB.
 */
export default class Control extends WorkerEntrypoint<ControlEnv> {
  override async fetch(request: Request): Promise<Response> {
    if (request.headers.get('x-control-secret') !== this.env.CONTROL_SECRET) {
      return new Response(null, { status: 404 });
    }
    try {
      return Response.json({ result: (await this.#run(await request.json())) ?? null });
    } catch (error) {
      return Response.json({ error: error instanceof Error ? error.message : String(error) });
    }
  }

  async #run(call: ControlCall): Promise<unknown> {
    switch (call.op) {
      case 'setRoutes':
        return await this.env.FRONT.setRoutes(call.patterns, call.elsewhere);
      case 'kvGet':
        return await this.#kv(call.namespace).get(call.key, 'text');
      case 'kvPut':
        return await this.#kv(call.namespace).put(call.key, call.value, call.options);
      case 'kvDelete':
        return await this.#kv(call.namespace).delete(call.key);
      case 'kvList':
        return await this.#kv(call.namespace).list(call.options);
      case 'logGet':
        return await (await this.env.RAW_LOGS.get(call.key))?.text();
      case 'logPut':
        return void (await this.env.RAW_LOGS.put(call.key, call.value));
      case 'logDelete':
        return await this.env.RAW_LOGS.delete(call.key);
      case 'logList': {
        const { objects, ...page } = await this.env.RAW_LOGS.list(call.options);
        const shown = objects.map(({ key, size, etag, uploaded }) => ({ key, size, etag, uploaded }));
        return { cursor: page.truncated ? page.cursor : null, objects: shown };
      }
    }
  }

  #kv(name: string): KVNamespace {
    return this.env[name] as KVNamespace; // the host binds each namespace that a call names
  }
}
