import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import getPort from 'get-port';
import { writeTsigKey } from '../../../gitops/clients/tsig-key.ts';
import { PATH_WITH_SBIN } from '../components.ts';
import { eventually } from '../eventually.ts';

export const KNOT_ZONE = 'example.net';

/** Names that the key `half` may write. */
const HALF = ['acme-shop', 'acme-shop-origin', 'acme-shop-preview'];
/** The keys: the applier's own, one that only reads, one for some names, and one of a foreign person. */
const KEYS = ['tagyard', 'reader', 'half', 'person'] as const;
export type KnotKey = (typeof KEYS)[number];
const secrets = Object.fromEntries(KEYS.map((name) => [name, randomBytes(32).toString('base64')]));

const env = { PATH: PATH_WITH_SBIN };

interface KnotOptions {
  /** The port of another Knot. Set: this one is its secondary, and transfers the zone only on request. */
  readonly primary?: number;
  /** Further zones, empty at first. */
  readonly zones?: readonly string[];
}

/** A Knot with one zone, a folder and a port of its own. */
export async function startKnot({ primary, zones = [] }: KnotOptions = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'tagyard-knot-'));
  const port = await getPort({ host: '127.0.0.1' });
  const config = join(dir, 'knot.conf');
  await writeFile(
    config,
    configuration(dir, port, primary) + zones.map((zone) => zoneOf(zone, dir)).join(''),
    {
      mode: 0o600,
    },
  );
  for (const zone of primary === undefined ? [KNOT_ZONE, ...zones] : []) {
    await writeFile(join(dir, `${zone}.zone`), zoneFile(zone));
  }
  const secretOf = (name: string) => secrets[name] ?? '';
  for (const name of KEYS) {
    await writeFile(join(dir, `${name}.secret`), `${secretOf(name)}\n`, { mode: 0o600 });
    await writeTsigKey(join(dir, `${name}.key`), {
      name,
      algorithm: 'hmac-sha256',
      secretFile: join(dir, `${name}.secret`),
    });
  }
  const keyFile = (name: KnotKey) => join(dir, `${name}.key`);
  const ask = async (...query: string[]) =>
    (await execa('kdig', ['@127.0.0.1', '-p', String(port), '+tcp', ...query], { env })).stdout;

  const start = async () => {
    const child = spawn('knotd', ['-c', config], { env, stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (text: Buffer) => {
      said += text;
    });
    const answers = async () => {
      if (child.exitCode !== null) throw new Error(`knotd ended: ${said}`);
      if (!(await ask('+short', '+timeout=1', '+retry=0', KNOT_ZONE, 'SOA'))) throw new Error('no zone yet');
    };
    await eventually(answers, { until: () => child.exitCode !== null });
    return child;
  };
  let server: Awaited<ReturnType<typeof start>> | null = await start();

  const knot = {
    port,
    dir,
    keyFile,
    secretOf,
    /** The data of a name's records of one type, sorted. */
    async read(name: string, type: string): Promise<string[]> {
      const answer = await ask('+short', `${name}.${KNOT_ZONE}`, type);
      return answer.split('\n').filter(Boolean).sort();
    },
    async serial(): Promise<number> {
      return Number((await ask('+short', KNOT_ZONE, 'SOA')).split(' ')[2]);
    },
    /** A foreign update: lines of `knsupdate`, with names relative to the zone. */
    async update(...lines: string[]): Promise<void> {
      await knot.updateZone(KNOT_ZONE, ...lines);
    },
    /** The same in one of the zones. */
    async updateZone(zone: string, ...lines: string[]): Promise<void> {
      const head = [`server 127.0.0.1 ${port}`, `zone ${zone}.`, `origin ${zone}.`];
      const input = [...head, ...lines, 'send', ''].join('\n');
      await execa('knsupdate', ['-v', '-k', keyFile('person')], { env, input });
    },
    /** On a secondary: fetches the zone from the primary. */
    async refresh(): Promise<void> {
      await execa('knotc', ['-c', config, '-b', 'zone-retransfer', KNOT_ZONE], { env });
    },
    async stop(): Promise<void> {
      const exited = server === null ? null : once(server, 'exit');
      server?.kill('SIGTERM');
      await exited;
      server = null;
    },
    async start(): Promise<void> {
      server = await start();
    },
    async close(): Promise<void> {
      await knot.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
  return knot;
}
export type Knot = Awaited<ReturnType<typeof startKnot>>;

const zoneFile = (zone: string) => `$ORIGIN ${zone}.
@ 3600 SOA ns.${zone}. admin.${zone}. 1 86400 3600 864000 300
@ 3600 NS ns
ns 3600 A 127.0.0.1
`;

/** A further zone, to be appended to the configuration, whose last part is the list of zones. */
const zoneOf = (zone: string, dir: string) =>
  [
    `  - domain: ${zone}`,
    `    storage: ${dir}`,
    '    acl: writers',
    `    file: ${zone}.zone`,
    '    zonefile-load: whole',
    '    journal-content: changes',
    '',
  ].join('\n');

function configuration(dir: string, port: number, primary: number | undefined): string {
  const keys = KEYS.flatMap((name) => [
    `  - id: ${name}`,
    '    algorithm: hmac-sha256',
    `    secret: "${secrets[name]}"`,
  ]);
  const role =
    primary === undefined
      ? [`    file: ${KNOT_ZONE}.zone`, '    zonefile-load: whole', '    journal-content: changes']
      : ['    master: primary'];
  return [
    'server:',
    `  rundir: ${dir}`,
    `  listen: 127.0.0.1@${port}`,
    '  udp-workers: 1',
    '  tcp-workers: 1',
    '  background-workers: 1',
    'log:',
    '  - target: stderr',
    '    any: warning',
    'database:',
    `  storage: ${dir}`,
    '  journal-db-max-size: 32M',
    'key:',
    ...keys,
    ...(primary === undefined
      ? []
      : ['remote:', '  - id: primary', `    address: 127.0.0.1@${primary}`, '    key: tagyard']),
    'acl:',
    '  - id: writers',
    '    key: [tagyard, person]',
    '    action: [transfer, update]',
    '  - id: readers',
    '    key: [reader, half]',
    '    action: transfer',
    '  - id: half',
    '    key: half',
    '    action: update',
    '    update-owner: name',
    '    update-owner-match: sub-or-equal',
    `    update-owner-name: [${HALF.map((name) => `${name}.${KNOT_ZONE}.`).join(', ')}]`,
    'zone:',
    `  - domain: ${KNOT_ZONE}`,
    `    storage: ${dir}`,
    '    acl: [writers, readers, half]',
    ...role,
    '',
  ].join('\n');
}
