import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import getPort from 'get-port';
import { ensureLocalCa } from '../../sites/local/local-ca.ts';
import { PATH_WITH_SBIN } from './components.ts';
import { eventually } from './eventually.ts';

export interface PebbleOptions {
  /** The loopback port of the DNS server that it resolves names with. */
  readonly dnsPort: number;
  /** The port that it connects to when it validates http-01 challenges. */
  readonly httpPort: number;
  /** Percent of good nonces that it refuses nevertheless. */
  readonly refusedNonces?: number;
  /** The longest pause before a validation, seconds; unset: none. */
  readonly slowSeconds?: number;
  /** Names that it issues nothing for. */
  readonly refusedNames?: readonly string[];
  /** The keys that accounts must be bound to, in Base64url by id; unset: none. */
  readonly boundTo?: Readonly<Record<string, string>>;
  /** How long its certificates are good, seconds. */
  readonly lifetimeSeconds?: number;
}

/** A Pebble (Let's Encrypt's test authority): real orders, lookups and validations. */
export async function startPebble(options: PebbleOptions) {
  const {
    dnsPort,
    httpPort,
    refusedNonces = 0,
    slowSeconds,
    refusedNames,
    lifetimeSeconds,
    boundTo,
  } = options;
  const dir = await mkdtemp(join(tmpdir(), 'tagyard-pebble-'));
  const ca = await ensureLocalCa(join(dir, 'ca'));
  const { cert, key } = await ca.pathsFor('localhost');
  const [port, managementPort] = [await getPort({ host: '127.0.0.1' }), await getPort({ host: '127.0.0.1' })];
  const config = {
    pebble: {
      listenAddress: `127.0.0.1:${port}`,
      managementListenAddress: `127.0.0.1:${managementPort}`,
      certificate: cert,
      privateKey: key,
      httpPort,
      tlsPort: 1,
      ocspResponderURL: '',
      externalAccountBindingRequired: boundTo !== undefined,
      ...(boundTo === undefined ? {} : { externalAccountMACKeys: boundTo }),
      ...(refusedNames === undefined ? {} : { domainBlocklist: refusedNames }),
      ...(lifetimeSeconds === undefined ? {} : { certificateValidityPeriod: lifetimeSeconds }),
    },
  };
  await writeFile(join(dir, 'pebble.json'), JSON.stringify(config));
  const pem = await readFile(ca.caFile, 'utf8');
  const fetchText = async (url: string) => {
    const request = get(url, { ca: pem, agent: false });
    const [response] = await once(request, 'response');
    return await text(response);
  };
  let output = '';

  const start = async () => {
    const child = spawn(
      'pebble',
      ['-config', join(dir, 'pebble.json'), '-dnsserver', `127.0.0.1:${dnsPort}`],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          PATH: PATH_WITH_SBIN,
          PEBBLE_WFE_NONCEREJECT: String(refusedNonces),
          // If a valid authorization were used again, the validation that tests wait for would not take place.
          PEBBLE_AUTHZREUSE: '0',
          ...(slowSeconds === undefined
            ? { PEBBLE_VA_NOSLEEP: '1' }
            : { PEBBLE_VA_SLEEPTIME: String(slowSeconds) }),
        },
      },
    );
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (said: string) => {
        output += said;
      });
    }
    await eventually(
      async () => {
        if (child.exitCode !== null) throw new Error(`pebble ended: ${output.slice(-2_000)}`);
        await fetchText(`https://localhost:${port}/dir`);
      },
      { until: () => child.exitCode !== null },
    );
    return child;
  };
  let server: Awaited<ReturnType<typeof start>> | null = await start();

  const pebble = {
    directoryUrl: `https://localhost:${port}/dir`,
    /** The CA that verifies its own HTTPS. */
    caFile: ca.caFile,
    /** PEM of the root that its certificates lead to; another after each start. */
    root: () => fetchText(`https://localhost:${managementPort}/roots/0`),
    /** How many requests for a path it answered, those with refused nonces included. */
    requests: (path: string) => output.split(` POST ${path} `).length - 1,
    /** How many orders it took. */
    orders: () => output.split(' Added order ').length - 1,
    output: () => output,
    async stop() {
      const exited = server === null ? null : once(server, 'exit');
      server?.kill('SIGTERM');
      await exited;
      server = null;
    },
    /** Starts it again; it has forgotten every account and order. */
    async start() {
      server = await start();
    },
    async close() {
      await pebble.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
  return pebble;
}
