import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';

type Callback = (error: Error | null, address: string | LookupAddress[], family?: number) => void;

/**
 * Asks the system's resolver. If it can't resolve a name under `.localhost`, the address is `127.0.0.1`: RFC 6761
 * reserves these names for loopback, but not every resolver implements that. In a container, the engine's entry in the
 * hosts file takes precedence.
 */
export function lookupWithLocalhost(hostname: string, options: LookupOptions, done: Callback): void {
  lookup(hostname, options, (error, address, family) => {
    if (error === null) return done(null, address, family);
    if (!hostname.endsWith('.localhost')) return done(error, '');
    if (options.all === true) return done(null, [{ address: '127.0.0.1', family: 4 }]);
    done(null, '127.0.0.1', 4);
  });
}
