import { Resolver } from 'node:dns/promises';
import { readdir, readFile, stat } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { identitiesIn, recipientsOf, testIdentities } from '../../sites/manifest/secrets.ts';
import { SystemNginx } from '../appliers/proxy/nginx/system.ts';
import { acmeLibrary } from '../clients/acme-http.ts';
import { runCommand } from '../clients/command.ts';
import { checkPart, NotChecked, textOfError } from '../report/check-part.ts';
import type { PartCheck } from '../report/report.ts';
import { type CertificateEndpoint, servedCertificate } from './served-certificate.ts';

/** Checks of a host's settings that need no site. None throws. */

const OLDEST_NGINX = [1, 19, 5];
/** The configuration of a thousand sites takes seconds to read. */
const NGINX_MS = 8_000;

/** `recipient`: AGE_RECIPIENT, where it is known here. */
export async function checkAgeIdentity(file: string, recipient: string | undefined): Promise<PartCheck> {
  return await checkPart('age_identity', {
    fix: 'unreadable',
    subject: `AGE_IDENTITY_FILE ${file}`,
    async ask(_signal, fault) {
      const text = await readFile(file, 'utf8');
      await testIdentities(text);
      const count = identitiesIn(text).length;
      if (recipient !== undefined && !(await recipientsOf(text)).includes(recipient)) {
        throw fault(`AGE_RECIPIENT: no identity of ${file} decrypts what is encrypted to it`, 'other');
      }
      return `${count === 1 ? 'an identity' : `${count} identities`} in ${file}`;
    },
  });
}

/** `files`: paths by their settings; a folder stands for the `.key` files in it. What isn't there has no reader. */
export async function checkKeyFiles(files: Readonly<Record<string, string | undefined>>): Promise<PartCheck> {
  return await checkPart('key_files', {
    fix: 'open',
    async ask(_signal, fault) {
      const found = await Promise.all(
        Object.entries(files).map(async ([setting, path]) =>
          (await keysIn(path)).map((file) => ({ setting, file })),
        ),
      );
      const open: string[] = [];
      for (const { setting, file } of found.flat()) {
        const { mode } = await stat(file);
        if ((mode & 0o077) !== 0)
          open.push(`${setting}: ${file} has the mode ${(mode & 0o777).toString(8).padStart(4, '0')}`);
      }
      if (open.length > 0) throw fault(open.join('; '), 'open');
      return found.flat().length === 1
        ? 'only its owner can read the key file'
        : 'only their owner can read the key files';
    },
  });
}

async function keysIn(path: string | undefined): Promise<string[]> {
  if (path === undefined) return [];
  const entry = await stat(path).catch(() => null);
  if (entry === null) return [];
  if (!entry.isDirectory()) return [path];
  return (await readdir(path)).filter((name) => name.endsWith('.key')).map((name) => join(path, name));
}

/** `prefix`: the folder of the proxy's files. */
export async function checkNginx(
  bin: string,
  { systemConfig, prefix }: { readonly systemConfig: string | undefined; readonly prefix: string },
): Promise<PartCheck> {
  return await checkPart('nginx', {
    fix: 'missing',
    timeoutMs: NGINX_MS,
    async ask(signal, fault) {
      const { stderr } = await runCommand(bin, ['-v'], { signal }).catch((error: unknown) => {
        throw fault(`NGINX_BIN: ${textOfError(error)}`, 'missing');
      });
      const version = /nginx\/(\d+\.\d+\.\d+)/.exec(stderr)?.[1];
      if (version === undefined) throw fault(`NGINX_BIN: ${bin} is not nginx`, 'missing');
      if (isOlder(version.split('.').map(Number), OLDEST_NGINX)) {
        throw fault(`NGINX_BIN: ${bin} is ${version}`, 'missing');
      }
      if (systemConfig === undefined) return `nginx ${version}`;
      const dump = await runCommand(bin, ['-T', '-e', 'stderr', '-c', systemConfig], {
        signal,
        maxOutput: Number.MAX_SAFE_INTEGER,
      }).catch((error: unknown) => {
        throw new NotChecked(`NGINX_SYSTEM_CONFIG: nginx can’t read ${systemConfig}: ${textOfError(error)}`);
      });
      const line = SystemNginx.includeLine(prefix);
      if (!dump.stdout.includes(line.replace(/^include |;$/g, ''))) {
        throw fault(`NGINX_SYSTEM_CONFIG: ${systemConfig} lacks the line "${line}"`, 'include');
      }
      return `nginx ${version}; ${systemConfig} includes the sites`;
    },
  });
}

function isOlder(version: readonly number[], least: readonly number[]): boolean {
  const at = version.findIndex((part, index) => part !== least[index]);
  return at >= 0 && (version[at] ?? 0) < (least[at] ?? 0);
}

/**
 * Whether HOST_ADDRESS leads here: it is an address of this machine, or a site's origin has the same certificate there as at
 * the proxy itself. `proxy`: the proxy's own socket, and the name of a site; `null`: it doesn't run, or has no site.
 */
export async function checkHostAddress(
  address: string,
  proxy: CertificateEndpoint | null,
): Promise<PartCheck> {
  return await checkPart('host_address', {
    fix: 'foreign',
    async ask(_signal, fault) {
      const own = Object.values(networkInterfaces()).flatMap((all) => all?.map((one) => one.address) ?? []);
      if (own.includes(address) || address.startsWith('127.'))
        return `${address} is an address of this machine`;
      const fact = `HOST_ADDRESS: ${address} is no address of this machine`;
      if (proxy === null) throw new NotChecked(`${fact}; whether it leads here shows once a site is applied`);
      const at = async (endpoint: CertificateEndpoint) => (await servedCertificate(endpoint, ANSWER_MS)).raw;
      const expected = await at(proxy).catch((error: unknown) => {
        throw new NotChecked(
          `${fact}; the proxy serves no certificate for ${proxy.name}: ${textOfError(error)}`,
        );
      });
      const found = await at({ ...proxy, address }).catch((error: unknown) => {
        throw fault(
          `${fact}, and nothing answers at its port ${proxy.port}: ${textOfError(error)}`,
          'foreign',
        );
      });
      if (expected.equals(found)) return `${address} leads to this machine`;
      throw fault(`${fact}, and another server answers there for ${proxy.name}`, 'foreign');
    },
  });
}

const ANSWER_MS = 1_400;

/** `zones`: names by their settings. `servers`: as in `dnsLookup`. */
export async function checkDnsZones(
  zones: Readonly<Record<string, string>>,
  servers: readonly string[],
): Promise<PartCheck> {
  return await checkPart('dns_zones', {
    fix: 'silent',
    async ask(_signal, fault) {
      const asked = Object.entries(zones).filter(([, zone]) => !/(?:^|\.)localhost$/.test(zone));
      const resolver = new Resolver({ timeout: ANSWER_MS, tries: 1 });
      if (servers.length > 0) resolver.setServers(servers);
      const from = servers.length > 0 ? `DNS_RESOLVERS ${servers.join(', ')}` : 'the system’s resolvers';
      const unknown: string[] = [];
      for (const [setting, zone] of asked) {
        const isKnown = await hasZone(resolver, zone).catch((error: unknown) => {
          throw fault(`${setting}: ${from} give no answer for ${zone}: ${textOfError(error)}`, 'silent');
        });
        if (!isKnown) unknown.push(`${setting}: ${from} know no zone of ${zone}`);
      }
      if (unknown.length > 0) throw fault(unknown.join('; '), 'unknown');
      return asked.length === 0 ? 'names under localhost need no zone' : `${from} know the zones`;
    },
  });
}

/** A name that isn't a zone itself may be in one: a registrable domain has at least two labels. */
async function hasZone(resolver: Resolver, name: string): Promise<boolean> {
  const labels = name.split('.');
  for (let at = 0; at <= labels.length - 2; at += 1) {
    try {
      await resolver.resolveSoa(labels.slice(at).join('.'));
      return true;
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : null;
      if (code !== 'ENODATA' && code !== 'ENOTFOUND') throw error;
    }
  }
  return false;
}

/** Whether the authority's directory has what a client of ACME needs (RFC 8555 7.1.1). */
export async function checkAcme(directoryUrl: string, caFile: string | undefined): Promise<PartCheck> {
  return await checkPart('acme', {
    fix: 'silent',
    subject: `ACME_DIRECTORY_URL ${directoryUrl}`,
    async ask(signal) {
      const ca = caFile === undefined ? {} : { ca: await readFile(caFile, 'utf8') };
      const { axios } = await acmeLibrary({ directoryUrl, ...ca });
      const { data } = await axios.get<unknown>(directoryUrl, { signal });
      const isDirectory = typeof data === 'object' && data !== null && 'newOrder' in data;
      if (!isDirectory) throw new Error('it is no directory of an authority');
      return `${new URL(directoryUrl).host} answers`;
    },
  });
}
