import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';

type Callback = (error: Error | null, address: string | LookupAddress[], family?: number) => void;

/**
 * The system's resolver. Names under `.localhost` that it does not know are `127.0.0.1`: RFC 6761 makes them loopback,
 * but not every resolver does. In a container the engine's entry in the hosts file comes first.
 */
export function lookupWithLocalhost(hostname: string, options: LookupOptions, done: Callback): void {
  lookup(hostname, options, (error, address, family) => {
    if (error === null) return done(null, address, family);
    if (!hostname.endsWith('.localhost')) return done(error, '');
    if (options.all === true) return done(null, [{ address: '127.0.0.1', family: 4 }]);
    done(null, '127.0.0.1', 4);
  });
}
