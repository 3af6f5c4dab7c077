import { definePlugin } from '../contract.ts';
import { changedHit } from '../parameters.ts';
import { cutAddress } from './address.ts';
import { config } from './config.ts';

/** Cuts the visitor's address, and drops or hashes parameters, before the tag server gets them. */
export default definePlugin({
  name: 'anonymizer',
  kind: 'optional',
  flag: 'anonymizer',
  config,
  routes: [],
  failsClosed: true,
  // The id is made from the visitor's own, and consent is judged by parameters that a site may drop.
  follows: ['consent_gate', 'user_id'],
  async before(request, context, { forwards }) {
    const { settings, visitor, sign } = context;
    const { drop, hash } = settings;
    if (settings.address !== 'keep') {
      const isCut = settings.address === 'cut' && visitor.address !== null;
      // Also where a plugin's own route asks the tag server.
      context.tellTagServer({ address: isCut ? cutAddress(visitor.address) : null });
      if (forwards) context.count('address');
    }
    if (!forwards) return undefined;
    if (drop.length + hash.length === 0) return undefined;
    return await changedHit(request, new Headers(request.headers), (name, value) => {
      if (drop.includes(name)) return null;
      return hash.includes(name) ? sign(`${name}\n${value}`) : value;
    });
  },
});
