import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { availableParallelism } from 'node:os';
import Docker from 'dockerode';
import { expect, test } from 'vitest';
import { dockerRuntime } from '../../../../gitops/appliers/containers/docker-runtime.ts';
import { containerSpecs } from '../../../../sites/manifest/containers.ts';
import { Slots } from '../../../../sites/manifest/slots.ts';
import { eventually } from '../../../support/eventually.ts';
import { loadedManifest } from '../../../support/manifest.ts';

test('the Docker runtime starts at most as many containers at once as the host has cores', async () => {
  let underWay = 0;
  let most = 0;
  await using engine = createServer((request, response) => {
    request.resume();
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://engine');
    const name = searchParams.get('name');
    if (name !== null) {
      underWay += 1;
      most = Math.max(most, underWay);
      response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ Id: name }));
    } else if (pathname.endsWith('/start')) {
      underWay -= 1;
      response.writeHead(204).end();
    }
  }).listen(0, '127.0.0.1');
  await once(engine, 'listening');
  const { port } = engine.address() as AddressInfo; // it listens on TCP
  const runtime = dockerRuntime({ docker: new Docker({ protocol: 'http', host: '127.0.0.1', port }) });
  const [spec] = containerSpecs(loadedManifest('acme-shop'), { slots: new Slots('127.77'), originPort: 443 });
  if (spec === undefined) throw new Error('a site without containers');
  const cores = availableParallelism();
  const names = Array.from({ length: 3 * cores }, (_, index) => `server-${index}`);

  const { signal } = new AbortController();
  const ids = await Promise.all(names.map((name) => runtime.start({ name, mark: 'a mark', spec }, signal)));

  expect(ids).toEqual(names);
  expect(most).toBe(cores);
});

test('a removal that is under way already is waited for', async () => {
  const asked: string[] = [];
  const removed = Promise.withResolvers<void>();
  await using engine = createServer(async (request, response) => {
    const { pathname, search } = new URL(request.url ?? '', 'http://engine');
    asked.push(`${request.method} ${pathname}${search}`);
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (request.method === 'DELETE')
      return answer(409, { message: 'removal of container a is already in progress' });
    if (!pathname.endsWith('/wait')) return answer(304, {});
    await removed.promise;
    return answer(200, { StatusCode: 137 });
  }).listen(0, '127.0.0.1');
  await once(engine, 'listening');
  const { port } = engine.address() as AddressInfo; // it listens on TCP
  const runtime = dockerRuntime({ docker: new Docker({ protocol: 'http', host: '127.0.0.1', port }) });
  let isDone = false;
  const removal = runtime.remove('a', new AbortController().signal).then(() => {
    isDone = true;
  });
  await eventually(() => expect(asked.at(-1)).toBe('POST /containers/a/wait?condition=removed'));
  expect(isDone).toBe(false);
  removed.resolve();
  await removal;
});
