import { lookup as systemLookup } from 'node:dns/promises';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { isPublicAddress } from '../../base/http/public-address.ts';
import { isWithinDomain, registrableDomain } from '../../sites/manifest/schema.ts';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** A tenant's address may not be called. */
export class AddressError extends Error {
  override name = 'AddressError';
}

export interface AddressRules {
  /** Zones of this installation. Names in their registrable domains are refused. */
  readonly ownZones: readonly string[];
  /** True only where everything runs on one machine. Link-local and metadata addresses are refused all the same. */
  readonly allowLoopback: boolean;
}

/** Whether a tenant may name this address. */
export function isCallable(address: string, { allowLoopback }: Pick<AddressRules, 'allowLoopback'>): boolean {
  if (allowLoopback && isOnLoopback(address)) return true;
  return isPublicAddress(address);
}

/**
 * Judges a tenant's address without resolving it. Throws `AddressError`. The scheme must be `https`; on loopback,
 * `http` is also accepted where the rules allow that.
 */
export function refuseAddress(url: string, rules: AddressRules): void {
  const { protocol, hostname, username, password } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  const isLoopback = rules.allowLoopback && (isLocalhost(host) || (isIP(host) !== 0 && isOnLoopback(host)));
  if (username !== '' || password !== '') throw new AddressError('the address names a user or a password');
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback)) {
    throw new AddressError('the address must begin with https://');
  }
  if (isIP(host) !== 0 ? !isCallable(host, rules) : isLocalhost(host) && !isLoopback) {
    throw new AddressError(`${host} is not a public address`);
  }
  const zone = rules.ownZones.find((own) => isWithinDomain(host, registrableDomain(own) ?? own));
  if (zone !== undefined && !isLoopback) throw new AddressError(`${host} belongs to this installation`);
}

function isLocalhost(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost');
}

function isOnLoopback(address: string): boolean {
  return loopback.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6');
}

type Resolve = (host: string) => Promise<readonly { readonly address: string; readonly family: number }[]>;

const bySystem: Resolve = async (host) =>
  isLocalhost(host)
    ? [{ address: '127.0.0.1', family: 4 }]
    : await systemLookup(host, { all: true, verbatim: true });

async function callableAddresses(host: string, rules: AddressRules, resolve: Resolve) {
  const found = await resolve(host).catch((cause: unknown) => {
    throw new AddressError(`${host} has no address`, { cause });
  });
  const isRefused = found.some(({ address }) => !isCallable(address, rules));
  if (found.length > 0 && !isRefused) return found;
  throw new AddressError(found.length > 0 ? `${host} has a non-public address` : `${host} has no address`);
}

/**
 * A lookup for sockets. It checks the addresses of the same resolution that the socket then uses, so a name can't pass
 * the check and then resolve to another address. Sockets to address literals do no lookup;
 * `refuseAddress` judges those.
 */
export function checkedLookup(rules: AddressRules, resolve = bySystem): LookupFunction {
  return (host, options, callback) => {
    callableAddresses(host, rules, resolve).then(
      (found) => {
        const [first] = found;
        if (options.all === true) callback(null, [...found]);
        else callback(null, first?.address ?? '', first?.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, ''),
    );
  };
}
