import { within } from './base/single-flight.ts';
import { EdgeError } from './http/errors.ts';
import type { EventLog } from './logs/event-log.ts';
import type { Timings } from './logs/request-record.ts';

export interface GuardDependencies {
  readonly timings: Timings;
  readonly now: () => number;
  readonly log: EventLog;
}

/** How long a hook may take. A plugin that never resolves must not hold up the page. */
const HOOK_TIMEOUT_MS = 1000;

interface Guarded {
  readonly name: string;
  readonly kind: 'mandatory' | 'optional';
}

/** Runs and times plugin code. Logs its errors, except an `EdgeError`, which the plugin throws as an answer. */
async function timed<T>(
  plugin: string,
  run: () => Promise<T>,
  { timings, now, log }: GuardDependencies,
): Promise<T> {
  const startedAt = now();
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof EdgeError)) log('plugin_failed', { plugin, error: String(error) });
    throw error;
  } finally {
    timings[plugin] = (timings[plugin] ?? 0) + (now() - startedAt);
  }
}

/** Runs a route's handler. Any result except a Response counts as a failure of the plugin. */
export function guardHandler(
  plugin: string,
  run: () => Response | Promise<Response>,
  dependencies: GuardDependencies,
): Promise<Response> {
  return timed(plugin, async () => responseOf(await run()), dependencies);
}

/**
 * Runs a hook. `check` gets its result and throws if the result is invalid. A failing optional plugin is skipped: the
 * result is `undefined`. A failing mandatory plugin fails the request.
 */
export async function guardHook<T>(
  { name, kind }: Guarded,
  run: () => Promise<unknown>,
  check: (result: unknown) => T,
  dependencies: GuardDependencies,
): Promise<T | undefined> {
  try {
    return await timed(
      name,
      async () => {
        const outcome = await within((async () => ({ result: await run() }))(), HOOK_TIMEOUT_MS);
        if (outcome === undefined) throw new Error('no result in time');
        return outcome.result === undefined ? undefined : check(outcome.result);
      },
      dependencies,
    );
  } catch (error) {
    if (kind === 'mandatory') throw error;
    return undefined;
  }
}

/** Checks the result of `before`, `after` or a handler at runtime: types can't enforce a plugin's contract. */
export function responseOf(result: unknown): Response {
  if (result instanceof Response) return result;
  throw new TypeError('not a Response');
}

/** A JSON copy of the result of `boot`. Serializing the copy later can't fail. */
export const jsonOf = (result: unknown): unknown => JSON.parse(JSON.stringify(result));

/** The result of a plugin's synchronous function, or `fallback` if it throws. */
export function valueOr<T>(plugin: string, run: () => T, fallback: T, log: EventLog): T {
  try {
    return run();
  } catch (error) {
    log('plugin_failed', { plugin, error: String(error) });
    return fallback;
  }
}
