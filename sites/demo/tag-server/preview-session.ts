import type { IncomingMessage } from 'node:http';
import { cookieValue } from './cookies.ts';
import type { ContainerConfig } from './settings.ts';

/** A debug cookie has one value per container: `GTM-A=env-3:GTM-B=env-1`. */
function valueFor(request: IncomingMessage, cookie: string, id: string): string | undefined {
  const pairs = cookieValue(request, cookie)?.split(':') ?? [];
  return pairs.find((pair) => pair.startsWith(`${id}=`))?.slice(id.length + 1);
}

/** True for a request for a draft of this container without its `gtm_auth`. The real server answers 401 as well. */
export function isUnauthorised(request: IncomingMessage, { id }: ContainerConfig): boolean {
  return (
    valueFor(request, 'gtm_preview', id) !== undefined && valueFor(request, 'gtm_auth', id) === undefined
  );
}
