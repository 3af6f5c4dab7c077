import { signal } from '@preact/signals';
import type { components } from '../../../../base/client/index.ts';

type Me = components['schemas']['Me'];
type Role = NonNullable<Me['clients'][number]['role']>;

/** An account that the login page offers. */
interface OfferedLogin {
  readonly hint: string;
  readonly name: string;
  readonly description: string;
}

export interface Logins {
  /** False: this browser has no session. True: it has one, which may have ended. */
  readonly hasSession: boolean;
  readonly isPossible: boolean;
  readonly accounts: readonly OfferedLogin[];
}

type SessionState =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'none'; readonly logins: Logins }
  | { readonly kind: 'failed'; readonly detail: string }
  | { readonly kind: 'open'; readonly me: Me };

export const currentSession = signal<SessionState>({ kind: 'unknown' });

/** Reads who is logged in in this browser. */
export async function readSession(): Promise<void> {
  try {
    const logins = (await read('/session/logins')) as Logins | null; // not checked: our own API answers
    const me = logins?.hasSession === false ? null : ((await read('/me')) as Me | null);
    if (me !== null) currentSession.value = { kind: 'open', me };
    else if (logins !== null) currentSession.value = { kind: 'none', logins };
  } catch (error) {
    currentSession.value = { kind: 'failed', detail: error instanceof Error ? error.message : String(error) };
  }
}

/** `null`: no person is logged in. */
async function read(path: string): Promise<unknown> {
  const answer = await fetch(path);
  if (answer.status === 401) return null;
  if (!answer.ok) throw new Error(`the API answered ${answer.status}`);
  return await answer.json();
}

export function me(): Me {
  const { value } = currentSession;
  if (value.kind !== 'open') throw new Error('no session');
  return value.me;
}

/** The address at which a login begins. After the login, the browser is at `returnTo`. */
export function loginUrl(returnTo: string, hint?: string): string {
  const query = new URLSearchParams({ returnTo, ...(hint === undefined ? {} : { hint }) });
  return `/session/login?${query}`;
}

function roleIn(client: string): Role | null {
  return me().clients.find(({ id }) => id === client)?.role ?? null;
}

/** May change settings. */
export function mayEdit(client: string): boolean {
  return ['owner', 'admin', 'editor'].includes(roleIn(client) ?? '');
}

/** May create, remove, revert, suspend. */
export function mayAct(client: string): boolean {
  return ['owner', 'admin'].includes(roleIn(client) ?? '');
}

export function clientName(id: string): string {
  return me().clients.find((client) => client.id === id)?.name ?? 'another client';
}
