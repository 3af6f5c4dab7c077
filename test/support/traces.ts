import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { request } from 'undici';

/** What remains of a site anywhere: DNS, routes, KV, proxy files, and containers of the instance's driver. */
export async function traces(
  home: string,
  site: string,
  driver: 'docker' | 'process' = 'process',
): Promise<Record<string, string[]>> {
  const { cloudflareToken, ports, instance } = JSON.parse(readFileSync(join(home, 'instance.json'), 'utf8'));
  const cloudflare = async (path: string): Promise<Record<string, unknown>[]> => {
    const url = `http://127.0.0.1:${ports.cloudflare}/client/v4${path}`;
    const answer = await request(url, { headers: { authorization: `Bearer ${cloudflareToken}` } });
    const { result } = (await answer.body.json()) as { result: Record<string, unknown>[] }; // the emulator's envelope
    return result;
  };
  const [zone] = await cloudflare('/zones');
  const account = zone === undefined ? '' : String((zone.account as { id: string }).id); // each emulated zone has one
  const records = await cloudflare(`/zones/${zone?.id}/dns_records?per_page=1000`);
  const routes = await cloudflare(`/zones/${zone?.id}/workers/routes`);
  const namespaces = await cloudflare(`/accounts/${account}/storage/kv/namespaces`);
  const keys = await Promise.all(
    namespaces.map(({ id }) => cloudflare(`/accounts/${account}/storage/kv/namespaces/${id}/keys`)),
  );
  const ours = (value: unknown) => JSON.stringify(value ?? '').includes(` ${site} `);
  return {
    dns: records.filter(({ comment }) => ours(comment)).map(({ name }) => String(name)),
    routes: routes
      .filter(({ pattern }) => String(pattern).startsWith(`${site}.`))
      .map(({ pattern }) => String(pattern)),
    kv: keys
      .flat()
      .filter(({ name, metadata }) => ours(metadata) || String(name).startsWith(`${site}:`))
      .map(({ name }) => String(name)),
    proxy: liveProxyFiles(home).filter((name) => name.includes(site)),
    containers: await containers(`tagyard-${instance}-${site}-`, driver),
  };
}

/** What the proxy serves from: nginx's current generation, or the embedded proxy's own files. */
function liveProxyFiles(home: string): string[] {
  const prefix = join(home, 'provisioner', 'proxy');
  const [folder] = ['current', 'sites'].filter((name) => existsSync(join(prefix, name)));
  if (folder === undefined) throw new Error(`the proxy keeps nothing in ${prefix}`);
  return readdirSync(join(prefix, folder), { recursive: true }).map(String);
}

async function containers(name: string, driver: 'docker' | 'process'): Promise<string[]> {
  const { stdout } = await (driver === 'docker'
    ? execa('docker', ['ps', '-a', '--format', '{{.Names}}'])
    : execa('ps', ['-eo', 'args']));
  return stdout.split('\n').filter((line) => line.includes(name));
}
