import type { LookupFunction } from 'node:net';
import type { DnsLookup } from '../clients/dns-lookup.ts';

/** Adapts a DNS lookup to Node's sockets. Only IPv4; `ENOTFOUND` if the name has no such address. */
export function nodeLookup(lookup: DnsLookup): LookupFunction {
  return (name, { all }, done) => {
    lookup.addresses(name).then(
      (addresses) => {
        const found = addresses
          .filter((address) => !address.includes(':'))
          .map((address) => ({ address, family: 4 }));
        const [first] = found;
        if (first === undefined)
          done(Object.assign(new Error(`${name} has no IPv4 address`), { code: 'ENOTFOUND' }), '');
        else if (all) done(null, found);
        else done(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => done(error, ''),
    );
  };
}
