import { type LookupAddress, type LookupOptions, lookup, Resolver } from 'node:dns';

type Callback = (error: Error | null, address: string | LookupAddress[], family?: number) => void;
type Query = Pick<Resolver, 'resolve4' | 'resolve6'>;

/** The errors by which DNS says that a name has no address. Any other error is a failure of the DNS server. */
const NOTHING: ReadonlySet<string | undefined> = new Set(['ENODATA', 'ENOTFOUND']);
/** A DNS server that doesn't answer must not long delay names under `.localhost`, which it need not know. */
const LIMITS = { timeout: 1_000, tries: 2 } as const;

/**
 * Resolves names as the real server's HTTP agents do: by DNS, and by the system, which reads the hosts file, only where
 * DNS has nothing. So the hosts file is never used for a name that DNS has, and if DNS fails the name can't be resolved.
 *
 * RFC 6761 reserves names under `.localhost` for loopback, but not every DNS server implements that. For these names a
 * failure of DNS counts as an answer without addresses; if the system has no address either, it is 127.0.0.1.
 */
export function lookupDnsFirst(dns: Query = new Resolver(LIMITS)) {
  return (hostname: string, options: LookupOptions, done: Callback): void => {
    const isLocal = hostname.endsWith('.localhost');
    addressesOf(dns, hostname, isLocal).then(
      (found) => {
        if (found.length === 0) return lookupInSystem(hostname, options, done);
        const wanted = found.filter(({ family }) => !options.family || family === Number(options.family));
        const [first] = wanted;
        if (first === undefined) return done(noAddress(hostname), '');
        if (options.all === true) done(null, wanted);
        else done(null, first.address, first.family);
      },
      (error: Error) => done(error, ''),
    );
  };
}

async function addressesOf(dns: Query, hostname: string, isLocal: boolean): Promise<LookupAddress[]> {
  const ask = (type: 'resolve4' | 'resolve6', family: 4 | 6) => {
    const { promise, resolve, reject } = Promise.withResolvers<LookupAddress[]>();
    dns[type](hostname, (error, addresses) => {
      if (error === null) resolve(addresses.map((address) => ({ address, family })));
      else if (isLocal || NOTHING.has(error.code)) resolve([]);
      else reject(error);
    });
    return promise;
  };
  return (await Promise.all([ask('resolve4', 4), ask('resolve6', 6)])).flat();
}

function lookupInSystem(hostname: string, options: LookupOptions, done: Callback): void {
  lookup(hostname, options, (error, address, family) => {
    if (error === null) return done(null, address, family);
    if (!hostname.endsWith('.localhost')) return done(error, '');
    if (options.all === true) return done(null, [{ address: '127.0.0.1', family: 4 }]);
    done(null, '127.0.0.1', 4);
  });
}

function noAddress(hostname: string): Error {
  return Object.assign(new Error(`no address of the wanted family: ${hostname}`), { code: 'ENOTFOUND' });
}
