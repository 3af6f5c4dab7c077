import { signal } from '@preact/signals';
import { createClient } from '../../../../base/client/index.ts';

/** Whether the session has ended while pages are open. Requests wait until a new login. */
export const isSessionOver = signal(false);
let resume: (() => void)[] = [];

/** Continues the requests that wait for a login. */
export function continueRequests(): void {
  isSessionOver.value = false;
  const waiting = resume;
  resume = [];
  for (const one of waiting) one();
}

/**
 * Sends a request. If the session has ended, sends the request again after the person has logged in, so that no change
 * is lost.
 */
export async function sendInSession(request: Request): Promise<Response> {
  const again = request.clone();
  const response = await fetch(request);
  if (response.status !== 401) return response;
  isSessionOver.value = true;
  await new Promise<void>((resolve) => resume.push(resolve));
  return await sendInSession(again);
}

/** The API, for the person who is logged in in this browser. */
export const api = createClient({
  url: location.origin,
  retries: 1,
  longestWaitSeconds: 5,
  fetch: sendInSession,
});

/** Lists of values are separated by commas. */
export const COMMAS = { array: { style: 'form', explode: false } } as const;
