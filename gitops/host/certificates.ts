import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../base/log.ts';
import type { ProxyEndpoint } from '../appliers/proxy/backend.ts';
import { type AcmeService, openAcme } from '../certificates/open.ts';
import { OperatorFiles } from '../certificates/operator-files.ts';
import type { OrderLookup } from '../clients/dns-lookup.ts';
import type { Env } from '../env.ts';

interface AcmeDeps {
  readonly log: Log;
  /** The host's age identity. */
  readonly secret: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Where the proxy answers challenges; throws where that isn't known. */
  readonly endpoint: () => ProxyEndpoint;
  /** The addresses that served names may resolve to. */
  readonly addresses: readonly string[];
  readonly lookup: OrderLookup;
}

/** `null`: this host orders no certificates. */
export async function acmeService(env: Env, deps: AcmeDeps): Promise<AcmeService | null> {
  const { ACME_DIRECTORY_URL: directoryUrl, ACME_EMAIL: email, ACME_CA_FILE: caFile } = env;
  if (directoryUrl === undefined) return null;
  return await openAcme(join(env.STATE_DIR, 'acme'), {
    directoryUrl,
    ...(email === undefined ? {} : { email }),
    ...(caFile === undefined ? {} : { caFile }),
    binding: await externalAccount(env),
    perHour: env.ACME_ORDERS_PER_HOUR,
    ...deps,
  });
}

/** The account that the operator has at the authority; `null`: it demands none. Throws if a half is missing. */
async function externalAccount(env: Env): Promise<{ kid: string; hmacKey: string } | null> {
  const { ACME_EAB_KEY_ID: kid, ACME_EAB_HMAC_KEY_FILE: file } = env;
  const hmacKey = file === undefined ? env.ACME_EAB_HMAC_KEY : (await readFile(file, 'utf8')).trim();
  if (kid === undefined && hmacKey === undefined) return null;
  if (kid !== undefined && hmacKey !== undefined) return { kid, hmacKey };
  throw new Error('set ACME_EAB_KEY_ID and ACME_EAB_HMAC_KEY (or ACME_EAB_HMAC_KEY_FILE), or none of them');
}

/** The pairs of manifests, `tls: uploaded`. */
export async function uploadedPairs(env: Pick<Env, 'STATE_DIR'>): Promise<OperatorFiles> {
  return await OperatorFiles.open({
    mode: 'uploaded',
    directory: '',
    keptIn: join(env.STATE_DIR, 'tls-uploaded'),
    hasAuthority: false,
  });
}

/** An operator's files, read at each observation. Throws if neither TLS_DIR nor ACME_DIRECTORY_URL is set. */
export async function operatorFiles(env: Env): Promise<OperatorFiles> {
  const hasAuthority = env.ACME_DIRECTORY_URL !== undefined;
  if (env.TLS_DIR === undefined && !hasAuthority) {
    throw new Error(
      'set TLS_DIR or ACME_DIRECTORY_URL: without one there are no certificates for origin, preview and custom domains',
    );
  }
  return await OperatorFiles.open({
    directory: env.TLS_DIR ?? join(env.STATE_DIR, 'tls'),
    keptIn: join(env.STATE_DIR, 'tls-served'),
    hasAuthority,
  });
}
