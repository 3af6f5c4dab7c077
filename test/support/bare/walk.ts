import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { z } from 'zod';
import { eventually } from '../eventually.ts';

/**
 * What a newcomer does with a running instance: opens the demo shop, creates a container by the API, and asks for its
 * loader. `walk.ts <the output of npm start>` exits with 0 if all of it works; `test/bare.sh` runs it. A plain program:
 * in the bare root, nothing but the checkout's own packages is there.
 */
const READY_MS = 300_000;
const ACTIVE_MS = 60_000;
const output = process.argv[2] ?? '';

await eventually(
  () => {
    if (!readFileSync(output, 'utf8').includes('ready in ')) throw new Error('the instance is not ready');
  },
  { timeoutMs: READY_MS },
);
const run = z
  .object({
    management: z.object({ url: z.url() }),
    demo: z.object({ clientId: z.string(), token: z.string(), pageUrl: z.url() }),
  })
  .parse(JSON.parse(readFileSync('.tagyard/run.json', 'utf8')));

const shop = await page(run.demo.pageUrl);
if (!shop.text.includes('<script')) throw new Error(`the demo shop answers ${shop.status} without a snippet`);

const answer = z.object({
  id: z.string(),
  status: z.string(),
  domains: z.array(z.object({ snippet: z.string() })).min(1),
});
const api = async (path: string, body?: object) => {
  const response = await fetch(`${run.management.url}${path}`, {
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
    headers: { authorization: `Bearer ${run.demo.token}`, 'content-type': 'application/json' },
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return answer.parse(await response.json());
};
const created = await api('/server-containers', {
  client: run.demo.clientId,
  name: 'Acme Shop',
  domains: ['acme.example'],
  webTagIds: { 'acme.example': 'GTM-ABC1234' },
  containerConfigB64: Buffer.from('id=GTM-SRV0001&env=1&auth=your-auth').toString('base64'),
});
const [, loader] = /"(http[^"]+\/l\/lt_\w+\.js)"/.exec(created.domains[0]?.snippet ?? '') ?? [];
if (loader === undefined) throw new Error(`the snippet has no loader: ${created.domains[0]?.snippet}`);
await eventually(
  async () => {
    const { status } = await api(`/server-containers/${created.id}`);
    const { status: served, text } = await page(loader);
    if (status !== 'active' || served !== 200 || text.length < 1000)
      throw new Error(`the container is ${status}, and its loader answers ${served}`);
  },
  { timeoutMs: ACTIVE_MS },
);
console.log(`walk: shop, container ${created.id} and its loader answer`);

/** A browser takes `*.localhost` for this machine; the resolver of a bare root doesn't. */
function page(url: string): Promise<{ readonly status: number; readonly text: string }> {
  const { host, port, pathname, search } = new URL(url);
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
  get({ host: '127.0.0.1', port, path: pathname + search, headers: { host } }, (response) => {
    let text = '';
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      text += chunk;
    });
    response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
  }).on('error', reject);
  return promise;
}
