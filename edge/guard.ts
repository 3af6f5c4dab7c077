import { within } from './base/single-flight.ts';
import { EdgeError } from './http/errors.ts';
import type { EventLog } from './logs/request-record.ts';

/** What plugins cost a request, in milliseconds, by plugin. */
export type Timings = Record<string, number>;

export interface GuardDependencies {
  readonly timings: Timings;
  readonly now: () => number;
  readonly log: EventLog;
}

/** How long a hook may take, in milliseconds: a plugin that never resolves mustn't hold the page. */
const HOOK_PATIENCE = 1000;

interface Guarded {
  readonly name: string;
  readonly kind: 'mandatory' | 'optional';
}

/** Runs plugin code: timed, and logged where it throws what isn't an answer of its own. */
async function watch<T>(
  plugin: string,
  run: () => Promise<T>,
  { timings, now, log }: GuardDependencies,
): Promise<T> {
  const began = now();
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof EdgeError)) log('plugin_failed', { plugin, error: String(error) });
    throw error;
  } finally {
    timings[plugin] = (timings[plugin] ?? 0) + (now() - began);
  }
}

/** Runs a route's handler; what isn't a Response is a failure of the plugin's. */
export function guardHandler(
  plugin: string,
  run: () => Response | Promise<Response>,
  dependencies: GuardDependencies,
): Promise<Response> {
  return watch(plugin, async () => responseOf(await run()), dependencies);
}

/**
 * Runs a hook beside the route. An optional plugin that throws, doesn't resolve or answers anything but a Response is
 * passed over and `undefined` comes back; a mandatory one's failure goes on.
 */
export async function guardHook(
  { name, kind }: Guarded,
  run: () => Promise<unknown>,
  dependencies: GuardDependencies,
): Promise<Response | undefined> {
  try {
    return await watch(
      name,
      async () => {
        const outcome = await within((async () => ({ value: await run() }))(), HOOK_PATIENCE);
        if (outcome === undefined) throw new Error(`no outcome within ${HOOK_PATIENCE} ms`);
        return outcome.value === undefined ? undefined : responseOf(outcome.value);
      },
      dependencies,
    );
  } catch (error) {
    if (kind === 'mandatory') throw error;
    return undefined;
  }
}

/** Types end where a plugin lies: what it answers is looked at. */
function responseOf(answer: unknown): Response {
  if (answer instanceof Response) return answer;
  throw new TypeError('the answer is no Response');
}

/** Asks a plugin something that it answers at once; a failure of its counts as `fallback`. */
export function ask<T>(plugin: string, run: () => T, fallback: T, log: EventLog): T {
  try {
    return run();
  } catch (error) {
    log('plugin_failed', { plugin, error: String(error) });
    return fallback;
  }
}
