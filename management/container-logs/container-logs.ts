import type { Context } from '../context/context.ts';
import { containerLogsRoutes } from './container-logs.routes.ts';
import { HostLogs } from './host-logs.ts';
import { watchHostLogs } from './watch.ts';

/** What the tag servers print: the routes that read it, and the work that runs in the background until a signal. */
export function containerLogs(context: Context) {
  const host = new HostLogs(context);
  return {
    routes: containerLogsRoutes(context, host),
    watch: (signal: AbortSignal) => watchHostLogs(context, host, signal),
  };
}
