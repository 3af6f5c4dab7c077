import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProxyEndpoint } from '../appliers/proxy/backend.ts';
import { probeChallenge } from '../appliers/proxy/probe.ts';
import { acmeAccount } from '../clients/acme.ts';
import type { DnsLookup } from '../host-report/names.ts';
import { folderOf, openAccount } from './account.ts';
import { CertificateKeeper } from './keeper.ts';
import { Ledger } from './ledger.ts';
import { Orders, type OrdersDeps } from './orders.ts';
import { CertificateStore } from './store.ts';

export interface AcmeOptions extends Pick<OrdersDeps, 'perHour' | 'log' | 'pauses'> {
  readonly directoryUrl: string;
  readonly email?: string;
  /** PEM file that the authority's own HTTPS is verified by besides what Node trusts. */
  readonly caFile?: string;
  /** Under which this host is reached. */
  readonly addresses: readonly string[];
  readonly lookup: DnsLookup;
  /** Where challenges are answered; asked when there is one. */
  readonly endpoint: () => ProxyEndpoint;
  readonly now?: () => number;
}

export interface AcmeService {
  readonly keeper: CertificateKeeper;
  /** What the proxy makes its answers to challenges of. */
  readonly thumbprint: string;
}

/** This host's account at an authority and all that it has issued, kept in `directory`. Nothing is ordered yet. */
export async function openAcme(directory: string, options: AcmeOptions): Promise<AcmeService> {
  const { directoryUrl, email, caFile, endpoint, now = Date.now, addresses, lookup, ...limits } = options;
  const folder = join(directory, folderOf(directoryUrl));
  const { thumbprint, key, url, saveUrl } = await openAccount(folder);
  const store = new CertificateStore(join(folder, 'names'));
  await store.prepare();
  const ledger = new Ledger(join(folder, 'ledger.json'));
  const acme = acmeAccount({
    directoryUrl,
    accountKey: key,
    accountUrl: url,
    onAccount: saveUrl,
    now,
    ...(email === undefined ? {} : { email }),
    ...(caFile === undefined ? {} : { ca: await readFile(caFile, 'utf8') }),
  });
  const probe: OrdersDeps['probe'] = async (host, signal) =>
    await probeChallenge(endpoint(), { host, thumbprint, signal });
  const orders = new Orders({ acme, store, ledger, known: await ledger.read(), probe, now, ...limits });
  return { keeper: new CertificateKeeper({ store, orders, lookup, addresses, now }), thumbprint };
}
