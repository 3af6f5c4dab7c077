import * as z from 'zod/mini';
import { definePlugin } from '../../../../plugins/contract.ts';

const config = z.object({ fails: z._default(z.boolean(), false) });

/** Changes the request, counts, and tells the tag server something of the visitor. */
const changes = definePlugin({
  name: 'changes',
  kind: 'optional',
  flag: 'changes',
  config,
  routes: [],
  async before(request, context, { forwards }) {
    if (!forwards) return undefined;
    context.count('changed');
    context.count('No Name');
    context.tellTagServer({ headers: { 'x-geo-city': 'Berlin' }, address: '203.0.113.0' });
    const url = new URL(request.url);
    url.searchParams.delete('secret');
    return new Request(url, { method: request.method, headers: { 'x-changed': 'yes' }, body: request.body });
  },
});

const closed = definePlugin({
  name: 'closed',
  kind: 'optional',
  flag: 'closed',
  config,
  routes: [],
  failsClosed: true,
  async before(request) {
    throw new Error(`nothing is known of ${request.method}`);
  },
});

const liar = definePlugin({
  name: 'liar',
  kind: 'optional',
  flag: 'liar',
  config,
  routes: [],
  async before(_request, context) {
    context.tellTagServer({ headers: { 'x-forwarded-for': '203.0.113.99' } });
    return undefined;
  },
});

export default [changes, closed, liar];
