import { api } from '../data/api.ts';

/** Ends the session here, then the login at the provider. */
export async function logOut(): Promise<void> {
  const { data } = await api.post('/session/logout');
  location.assign(data.logoutUrl ?? '/console');
}
