import { KV_NAMESPACES } from '../../plugins/document.ts';
import { PROFILES } from '../appliers/edge/store.ts';
import type { CloudflareClient } from '../clients/cloudflare.ts';
import { CloudflareRefusal } from '../clients/cloudflare-errors.ts';
import { checkPart, textOfError } from '../report/check-part.ts';
import type { PartCheck } from '../report/report.ts';
import { RUNBOOKS } from '../report/runbooks.ts';

/** The bindings that the worker needs, with Cloudflare's name of each type. Analytics and the queue are optional. */
const BINDINGS: ReadonlyMap<string, string> = new Map([
  ...[...KV_NAMESPACES, PROFILES].map((name) => [name, 'kv_namespace'] as const),
  ['RAW_LOGS', 'r2_bucket'],
  ['HOP_SECRET', 'secret_text'],
]);

interface Worker {
  readonly client: Pick<CloudflareClient, 'scriptSettings' | 'scriptBindings'>;
  readonly script: string;
}

type Settings = Awaited<ReturnType<CloudflareClient['scriptSettings']>>;

/** Checks that Cloudflare logs no request of the deployed worker: such a log has queries, addresses and all headers. */
export async function checkWorkerLogs({ client, script }: Worker): Promise<PartCheck> {
  return await checkWorker('worker_logs', script, {
    passed: 'invocation logs, traces, Logpush and tail workers are off',
    faults: async (signal) => logFaults(await client.scriptSettings(script, signal)),
  });
}

/** Whether the deployed worker has the stores and the secret that it reads. */
export async function checkWorkerBindings({ client, script }: Worker): Promise<PartCheck> {
  return await checkWorker('worker_bindings', script, {
    passed: `${[...BINDINGS.keys()].join(', ')} are bound`,
    async faults(signal) {
      const bindings = await client.scriptBindings(script, signal);
      const types = new Map(bindings.map(({ name, type }) => [name, type]));
      return [...BINDINGS].flatMap(([name, type]) => {
        const bound = types.get(name);
        if (bound === undefined) return `${name} is missing`;
        return bound === type ? [] : `${name} has the type ${bound}, not ${type}`;
      });
    },
  });
}

/** An unset setting counts as off, but unset logs follow `observability`, and unset invocation logs follow the logs. */
function logFaults({ logpush, observability, tail_consumers: tails }: Settings): string[] {
  const { enabled = false, logs, traces } = observability ?? {};
  const hasLogs = logs?.enabled ?? enabled;
  return [
    ...(hasLogs && logs?.invocation_logs !== false ? ['invocation logs are on'] : []),
    ...(traces?.enabled ? ['traces are on'] : []),
    ...(logpush ? ['Logpush is on'] : []),
    ...(tails ?? []).map(({ service }) => `the worker ${service} gets every request (a tail consumer)`),
  ];
}

interface WorkerQuestion {
  /** What is wrong; empty: the check passes. */
  faults(signal: AbortSignal): Promise<readonly string[]>;
  readonly passed: string;
}

async function checkWorker(
  name: 'worker_logs' | 'worker_bindings',
  script: string,
  { faults, passed }: WorkerQuestion,
): Promise<PartCheck> {
  return await checkPart(name, {
    fix: 'wrong',
    async ask(signal, fault) {
      const found = await faults(signal);
      if (found.length > 0) throw fault(found.join('; '), 'wrong');
      return passed;
    },
    explain(error) {
      const meaning = error instanceof CloudflareRefusal ? error.meaning : null;
      if (meaning === 'unauthorized') {
        const detail = 'give CLOUDFLARE_API_TOKEN the permission Workers Scripts: Read to check it';
        return { status: 'skipped', detail, fix: null };
      }
      if (meaning !== 'absent') {
        const detail = `Cloudflare’s API gave no answer about the worker: ${textOfError(error)}`;
        return { status: 'failed', detail, fix: RUNBOOKS[name].fixes.silent };
      }
      const detail = `EDGE_SCRIPT_NAME: there is no worker “${script}”`;
      return { status: 'failed', detail, fix: RUNBOOKS[name].fixes.absent };
    },
  });
}
