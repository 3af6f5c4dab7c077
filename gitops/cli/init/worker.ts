import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { cloudflareSetup } from '../../clients/cloudflare-setup.ts';
import { CliError } from '../output/cli-error.ts';
import type { Agreement } from './place.ts';

const consumer = z.object({
  queue: z.string(),
  dead_letter_queue: z.string(),
  max_batch_size: z.number(),
  max_batch_timeout: z.number(),
  max_retries: z.number(),
});
/** What is read of `wrangler.jsonc`, the one place that says what the worker needs. */
const wranglerFile = z.object({
  name: z.string(),
  compatibility_date: z.string(),
  observability: z.looseObject({}),
  logpush: z.boolean(),
  kv_namespaces: z.array(z.object({ binding: z.string() })),
  analytics_engine_datasets: z.array(z.object({ binding: z.string(), dataset: z.string() })),
  r2_buckets: z.array(z.object({ binding: z.string(), bucket_name: z.string() })),
  queues: z.object({
    producers: z.array(z.object({ binding: z.string(), queue: z.string() })),
    consumers: z.array(consumer),
  }),
  vars: z.record(z.string(), z.string()),
});

interface WorkerSetup {
  /** The package's folder, with `wrangler.jsonc` and the bundle. */
  readonly folder: string;
  readonly account: { readonly url: string; readonly token: string; readonly accountId: string };
  readonly script: string | undefined;
  readonly secrets: Readonly<Record<string, string>>;
  /** Variables in place of those of `wrangler.jsonc`. */
  readonly vars: Readonly<Record<string, string>>;
  readonly confirm: Agreement;
  /** Agrees to what a person would lose. */
  readonly replace: Agreement;
}

/**
 * Makes the worker with its stores at Cloudflare. Each step looks first whether it is done already; the worker's tag says
 * what was uploaded. Routes are the provisioner's.
 */
export async function setUpWorker({
  folder,
  account,
  secrets,
  vars,
  confirm,
  replace,
  ...options
}: WorkerSetup): Promise<void> {
  const code = await bundleIn(folder);
  if (code === null) {
    process.stdout.write('The worker is not uploaded: this is a checkout, see docs/deploy-edge.md\n');
    return;
  }
  const text = await readFile(join(folder, 'wrangler.jsonc'), 'utf8');
  const wanted = wranglerFile.parse(JSON.parse(text.replaceAll(/^\s*\/\/.*$/gm, '')));
  const script = options.script ?? wanted.name;
  const api = cloudflareSetup(account);
  const done = (what: string) => process.stdout.write(`Cloudflare has ${what}\n`);
  const make = async (what: string, isThere: boolean, create: () => Promise<void>) => {
    if (!isThere) {
      if (!(await confirm(`Make ${what} at Cloudflare?`)))
        throw new CliError(`${what} is missing at Cloudflare`);
      await create();
    }
    done(what);
  };

  const titles = new Map(wanted.kv_namespaces.map(({ binding }) => [binding, `${script}-${binding}`]));
  let namespaces = await api.namespaces();
  for (const title of titles.values()) {
    await make(`the KV namespace ${title}`, namespaces.has(title), () => api.createNamespace(title));
  }
  namespaces = await api.namespaces();
  const buckets = await api.buckets();
  for (const { bucket_name: name } of wanted.r2_buckets) {
    await make(`the bucket ${name}`, buckets.includes(name), () => api.createBucket(name));
  }
  let queues = await api.queues();
  const names = wanted.queues.consumers.flatMap(({ queue, dead_letter_queue: dead }) => [dead, queue]);
  for (const name of names) await make(`the queue ${name}`, queues.has(name), () => api.createQueue(name));
  queues = await api.queues();

  const bindings = [
    ...[...titles].map(([name, title]) => ({
      type: 'kv_namespace',
      name,
      namespace_id: namespaces.get(title),
    })),
    ...wanted.r2_buckets.map(({ binding: name, ...rest }) => ({ type: 'r2_bucket', name, ...rest })),
    ...wanted.queues.producers.map(({ binding: name, queue }) => ({
      type: 'queue',
      name,
      queue_name: queue,
    })),
    ...wanted.analytics_engine_datasets.map(({ binding: name, dataset }) => ({
      type: 'analytics_engine',
      name,
      dataset,
    })),
    ...Object.entries({ ...wanted.vars, ...vars }).map(([name, value]) => ({
      type: 'plain_text',
      name,
      text: value,
    })),
    ...Object.entries(secrets).map(([name, value]) => ({ type: 'secret_text', name, text: value })),
  ];
  const { compatibility_date, observability, logpush } = wanted;
  const metadata = { main_module: 'worker.js', compatibility_date, observability, logpush, bindings };
  const digest = createHash('sha256').update(code).update(JSON.stringify(metadata)).digest('hex');
  const tag = `tagyard-${digest.slice(0, 32)}`;
  const isUploaded = (await api.workerTags(script)).includes(tag);
  const lost = isUploaded ? [] : lostBindings(await api.workerBindings(script), bindings);
  if (lost.length > 0) {
    process.stdout.write(`The worker ${script} would lose what somebody bound to it: ${lost.join(', ')}\n`);
    if (!(await replace(`Replace the worker ${script} nevertheless?`))) {
      throw new CliError(
        `it keeps ${lost.join(', ')}; agree on a terminal without --yes, or upload this release by docs/deploy-edge.md`,
      );
    }
  }
  await make(`the worker ${script} of this release`, isUploaded, () =>
    // A second hop secret is there only while one replaces the other.
    api.uploadWorker(script, code, { ...metadata, tags: [tag], keep_bindings: ['secret_text'] }),
  );
  for (const { queue, dead_letter_queue, ...settings } of wanted.queues.consumers) {
    const id = queues.get(queue) ?? '';
    const isConsumed = (await api.consumers(id)).includes(script);
    await make(`the consumer of ${queue}`, isConsumed, () =>
      api.createConsumer(id, {
        ...{ script_name: script, dead_letter_queue },
        settings: {
          batch_size: settings.max_batch_size,
          max_wait_time_ms: settings.max_batch_timeout * 1000,
          max_retries: settings.max_retries,
        },
      }),
    );
  }
}

type Binding = Readonly<Record<string, unknown>>;

/** The names of bindings that the next version lacks or has with another value. Secrets are kept. */
function lostBindings(there: readonly Binding[], wanted: readonly Binding[]): unknown[] {
  const next = new Map(wanted.map((binding) => [binding.name, binding]));
  const isLost = (old: Binding) => {
    const binding = next.get(old.name);
    return binding === undefined || Object.entries(binding).some(([key, value]) => old[key] !== value);
  };
  return there
    .filter((old) => old.type !== 'secret_text' && old.text !== '' && isLost(old))
    .map(({ name }) => name);
}

/** The bundled worker of the package; `null`: this is a checkout that was not built. */
async function bundleIn(folder: string): Promise<string | null> {
  const path = join(folder, 'dist/worker.js');
  return existsSync(path) ? await readFile(path, 'utf8') : null;
}
