import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import fastify from 'fastify';
import getPort from 'get-port';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { serveOnDemand } from '../../../../sites/local/demo/on-demand.ts';

async function post(port: number): Promise<[number, string]> {
  const { statusCode, body } = await request(`http://127.0.0.1:${port}/echo`, {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: 'text',
  });
  return [statusCode, await body.text()];
}

test('a server on demand loads its application at the first request, once, and again after a failure', async () => {
  let loads = 0;
  const server = serveOnDemand(async () => {
    loads += 1;
    if (loads === 1) throw new Error('the package is missing');
    const app = fastify();
    app.post('/echo', async ({ body }) => body);
    return app;
  });
  const port = await getPort({ host: '127.0.0.1' });
  await server.listen(port);
  expect(loads).toBe(0);
  expect(await post(port)).toEqual([500, 'the package is missing\n']);
  const answers = await Promise.all([post(port), post(port)]);
  expect(answers).toEqual([
    [200, 'text'],
    [200, 'text'],
  ]);
  expect(loads).toBe(2);
  await server.close();
  await expect(post(port)).rejects.toThrow(/ECONNREFUSED|other side closed/);
});

test('the process that starts the parts loads neither Fastify nor Handlebars', async () => {
  const script = `import { registerHooks } from 'node:module';
    const urls = [];
    registerHooks({ load(url, context, next) { urls.push(url); return next(url, context); } });
    await import('./gitops/cli/up/up.ts');
    const { serveDemo } = await import('./sites/local/demo/servers.ts');
    const demo = await serveDemo({ shopPort: 0, vendorPort: 0, siteFile: '' });
    await demo.close();
    process.stdout.write(urls.join('\\n'));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script]);
  expect(stdout).toContain('/sites/local/demo/servers.ts');
  expect(stdout.split('\n').filter((url) => /node_modules\/(fastify|handlebars)\//.test(url))).toEqual([]);
});
