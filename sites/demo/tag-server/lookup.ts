import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';

type Answer = (error: Error | null, address: string | LookupAddress[], family?: number) => void;

/**
 * The system's resolver, and `127.0.0.1` for names under `.localhost` that it doesn't know (RFC 6761 wants them
 * loopback; not every resolver obliges). In a container the engine's host entry answers first.
 */
export function lookupWithLocalhost(hostname: string, options: LookupOptions, done: Answer): void {
  lookup(hostname, options, (error, address, family) => {
    if (error === null) return done(null, address, family);
    if (!hostname.endsWith('.localhost')) return done(error, '');
    if (options.all === true) return done(null, [{ address: '127.0.0.1', family: 4 }]);
    done(null, '127.0.0.1', 4);
  });
}
