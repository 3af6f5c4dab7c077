import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProxyEndpoint } from '../appliers/proxy/backend.ts';
import { probeChallenge } from '../appliers/proxy/probe.ts';
import { acmeAccount } from '../clients/acme.ts';
import type { OrderLookup } from '../clients/dns-lookup.ts';
import { folderOf, openAccount } from './account.ts';
import { CertificateKeeper } from './keeper.ts';
import { Ledger } from './ledger.ts';
import { Orders, type OrdersDeps } from './orders.ts';
import { CertificateStore } from './store.ts';

export interface AcmeOptions extends Pick<OrdersDeps, 'perHour' | 'log' | 'pauses'> {
  readonly directoryUrl: string;
  /** From which the account's key is derived. */
  readonly secret: string;
  readonly email?: string;
  /** Binds the account to one that the operator has at the authority (RFC 8555, 7.3.4). */
  readonly binding?: { readonly kid: string; readonly hmacKey: string } | null;
  /** PEM file of a CA that is trusted for the authority's HTTPS, in addition to Node's own. */
  readonly caFile?: string;
  /** The host's public addresses. */
  readonly addresses: readonly string[];
  readonly lookup: OrderLookup;
  /** Where the proxy answers challenges. */
  readonly endpoint: () => ProxyEndpoint;
  readonly now?: () => number;
}

export interface AcmeService {
  readonly keeper: CertificateKeeper;
  /** The thumbprint of the account's key, which the proxy's answers to challenges contain. */
  readonly thumbprint: string;
}

/** Opens this host's account at an authority, and the account's certificates, in `directory`. Orders nothing yet. */
export async function openAcme(directory: string, options: AcmeOptions): Promise<AcmeService> {
  const {
    directoryUrl,
    secret,
    binding = null,
    email,
    caFile,
    endpoint,
    now = Date.now,
    addresses,
    lookup,
    ...limits
  } = options;
  const folder = join(directory, folderOf(directoryUrl));
  const { thumbprint, key, url, saveUrl } = await openAccount(folder, secret);
  const store = new CertificateStore(join(folder, 'names'));
  await store.prepare();
  const ledger = new Ledger(join(folder, 'ledger.json'));
  const acme = acmeAccount({
    directoryUrl,
    accountKey: key,
    accountUrl: url,
    onAccount: saveUrl,
    binding,
    now,
    ...(email === undefined ? {} : { email }),
    ...(caFile === undefined ? {} : { ca: await readFile(caFile, 'utf8') }),
  });
  const probe: OrdersDeps['probe'] = async (host, signal) =>
    await probeChallenge(endpoint(), { host, thumbprint, signal });
  const orders = new Orders({ acme, store, ledger, known: await ledger.read(), probe, now, ...limits });
  const { caaIdentities } = acme;
  const keeper = new CertificateKeeper({ store, orders, lookup, caaIdentities, addresses, now });
  return { keeper, thumbprint };
}
