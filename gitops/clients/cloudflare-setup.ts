import { z } from 'zod';
import { parsedAnswer } from './cloudflare-call.ts';
import { type ApiEndpoint, CloudflareRefusal } from './cloudflare-errors.ts';
import { pacedFetch } from './cloudflare-transport.ts';
import { createPace } from './pace.ts';

interface SetupOptions {
  readonly url: string;
  readonly token: string;
  readonly accountId: string;
}

/** Settings of a new version of a worker, as the API's upload takes them. */
type WorkerMetadata = Readonly<Record<string, unknown>> & { readonly main_module: string };

const envelope = <Result extends z.ZodType>(result: Result) => z.object({ success: z.literal(true), result });
const namespaces = envelope(z.array(z.object({ id: z.string(), title: z.string() })));
const buckets = envelope(z.object({ buckets: z.array(z.object({ name: z.string() })) }));
const queue = z.object({ queue_id: z.string(), queue_name: z.string() });
const consumers = envelope(
  z.array(z.object({ script: z.string().optional(), script_name: z.string().optional() })),
);
const settings = envelope(z.object({ tags: z.array(z.string()).nullish() }));
const binding = z.looseObject({ name: z.string(), type: z.string() });
const version = envelope(z.object({ bindings: z.array(binding).nullish() }));
const anything = envelope(z.unknown());

/** The calls that `tagyard init` makes once: the worker, and the stores and queues that it needs. */
export function cloudflareSetup({ url, token, accountId }: SetupOptions) {
  const send = pacedFetch(createPace({ perSecond: 3.5, burst: 100 }), { timeoutMs: 60_000 });

  async function call<Schema extends z.ZodType>(
    endpoint: ApiEndpoint,
    schema: Schema,
    { method = 'GET', path, body }: { method?: string; path: string; body?: FormData | object },
  ): Promise<z.output<Schema>> {
    const isForm = body instanceof FormData;
    const request = new Request(`${url.replace(/\/$/, '')}/accounts/${accountId}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(isForm ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
    });
    const answered = send(request).then(async (response) => {
      const data: unknown = await response.json();
      return response.ok ? { data, response } : { error: data, response };
    });
    return await parsedAnswer({ endpoint, schema, call: answered, now: () => Date.now() });
  }

  async function queues() {
    const { result } = await call('queues', envelope(z.array(queue)), { path: '/queues?per_page=100' });
    return new Map(result.map(({ queue_name: name, queue_id: id }) => [name, id]));
  }

  return {
    /** The ids of all namespaces, by title. */
    async namespaces(): Promise<ReadonlyMap<string, string>> {
      const { result } = await call('kv', namespaces, { path: '/storage/kv/namespaces?per_page=100' });
      return new Map(result.map(({ title, id }) => [title, id]));
    },
    async createNamespace(title: string): Promise<void> {
      await call('kv', anything, { method: 'POST', path: '/storage/kv/namespaces', body: { title } });
    },

    async buckets(): Promise<readonly string[]> {
      const { result } = await call('buckets', buckets, { path: '/r2/buckets?per_page=1000' });
      return result.buckets.map(({ name }) => name);
    },
    async createBucket(name: string): Promise<void> {
      await call('buckets', anything, { method: 'POST', path: '/r2/buckets', body: { name } });
    },

    /** The ids of all queues, by name. */
    queues,
    async createQueue(name: string): Promise<void> {
      await call('queues', anything, { method: 'POST', path: '/queues', body: { queue_name: name } });
    },
    /** The workers that get a queue's messages. */
    async consumers(queueId: string): Promise<readonly (string | undefined)[]> {
      const { result } = await call('queues', consumers, { path: `/queues/${queueId}/consumers` });
      return result.map(({ script, script_name: name }) => name ?? script);
    },
    async createConsumer(queueId: string, consumer: object): Promise<void> {
      const path = `/queues/${queueId}/consumers`;
      await call('queues', anything, { method: 'POST', path, body: { type: 'worker', ...consumer } });
    },

    /** The tags of a worker; none: there is no such worker. */
    async workerTags(script: string): Promise<readonly string[]> {
      const path = `/workers/scripts/${script}/script-settings`;
      return (await unlessAbsent(call('scripts', settings, { path })))?.result.tags ?? [];
    },
    /** What a worker is bound to; nothing: there is no such worker. Secrets have no value. */
    async workerBindings(script: string): Promise<readonly z.output<typeof binding>[]> {
      const path = `/workers/scripts/${script}/settings`;
      return (await unlessAbsent(call('scripts', version, { path })))?.result.bindings ?? [];
    },
    async uploadWorker(script: string, code: string, metadata: WorkerMetadata): Promise<void> {
      const form = new FormData();
      form.set('metadata', new Blob([JSON.stringify(metadata)], { type: 'application/json' }));
      const name = metadata.main_module;
      form.set(name, new Blob([code], { type: 'application/javascript+module' }), name);
      await call('scripts', anything, { method: 'PUT', path: `/workers/scripts/${script}`, body: form });
    },
  };
}

async function unlessAbsent<Answer>(answer: Promise<Answer>): Promise<Answer | null> {
  return await answer.catch((error: unknown) => {
    if (error instanceof CloudflareRefusal && error.meaning === 'absent') return null;
    throw error;
  });
}
