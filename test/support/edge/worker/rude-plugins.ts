import * as z from 'zod/mini';
import type { Plugin } from '../../../../plugins/contract.ts';

const config = z.object({});

/** A plugin that breaks the contract. Its flag is its name. */
function rude(name: string, members: object): Plugin {
  const path = `/${name.replaceAll('_', '-')}`;
  // The cast is intended: the members violate their types.
  return {
    name,
    kind: 'optional',
    flag: name,
    config,
    routes: [{ method: 'GET', path, handle: () => new Response(path) }],
    ...members,
  } as Plugin;
}

const never = () => new Promise<never>(() => undefined);
const thrown = () => {
  throw new Error('rude');
};
const garbage = () => 'garbage';

export const RUDE_PLUGINS: readonly Plugin[] = [
  rude('throws', {
    before: thrown,
    after: thrown,
    boot: thrown,
    wantedCookies: thrown,
    keyCookies: thrown,
    domains: thrown,
    dynamic: { owns: thrown, handle: thrown },
  }),
  rude('rejects', { before: async () => thrown(), after: async () => thrown(), boot: async () => thrown() }),
  rude('hangs_before', { before: never }),
  rude('hangs_after', { after: never }),
  rude('hangs_boot', { boot: never }),
  rude('babbles', { before: garbage, after: garbage, boot: garbage }),
  rude('elsewhere', { before: async () => new Request('https://elsewhere.test/other') }),
  rude('uses_up', {
    async after(response: Response) {
      await response.text();
      throw new Error('half-way');
    },
  }),
  rude('handler_throws', { routes: [{ method: 'GET', path: '/handler-throws', handle: thrown }] }),
  rude('handler_babbles', { routes: [{ method: 'GET', path: '/handler-babbles', handle: garbage }] }),
  rude('handler_hangs', { routes: [{ method: 'GET', path: '/handler-hangs', handle: never }] }),
];
