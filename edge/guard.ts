import { soonWithin } from './base/single-flight.ts';
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

/** Runs a route's handler. Any result except a Response counts as a failure of the plugin. */
export async function guardHandler(
  name: string,
  run: () => Response | Promise<Response>,
  dependencies: GuardDependencies,
): Promise<Response> {
  const startedAt = dependencies.now();
  try {
    return responseOf(await run());
  } catch (error) {
    throw logged(name, error, dependencies);
  } finally {
    addTime(name, startedAt, dependencies);
  }
}

/**
 * Runs a hook. `check` gets its result and throws if the result is invalid. A failing optional plugin is skipped: the
 * result is `undefined`. A failing mandatory plugin fails the request. The time limit applies only if the hook returns
 * a promise.
 */
export async function guardHook<T>(
  { name, kind }: Guarded,
  run: () => unknown,
  check: (result: unknown) => T,
  dependencies: GuardDependencies,
): Promise<T | undefined> {
  const startedAt = dependencies.now();
  try {
    const given = run();
    const result = given instanceof Promise ? await inTime(given) : given;
    return result === undefined ? undefined : check(result);
  } catch (error) {
    const failure = logged(name, error, dependencies);
    if (kind === 'mandatory') throw failure;
    return undefined;
  } finally {
    addTime(name, startedAt, dependencies);
  }
}

async function inTime(given: Promise<unknown>): Promise<unknown> {
  const outcome = await soonWithin(
    given.then((result) => ({ result })),
    HOOK_TIMEOUT_MS,
  );
  if (outcome === undefined) throw new Error('no result in time');
  return outcome.result;
}

/** Logs an error of plugin code, except an `EdgeError`, which the plugin throws as an answer. */
function logged(plugin: string, error: unknown, { log }: GuardDependencies): unknown {
  if (!(error instanceof EdgeError)) log('plugin_failed', { plugin, error: String(error) });
  return error;
}

function addTime(plugin: string, startedAt: number, { timings, now }: GuardDependencies): void {
  timings[plugin] = (timings[plugin] ?? 0) + (now() - startedAt);
}

/** Checks the result of `before`: it may also be a changed request, for the same path. */
export function answerOrRequest(result: unknown, { url }: Request): Request | Response {
  if (!(result instanceof Request)) return responseOf(result);
  if (new URL(result.url).pathname !== new URL(url).pathname) throw new TypeError('another path');
  return result;
}

/** Checks the result of `after` or a handler at runtime: types can't enforce a plugin's contract. */
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
