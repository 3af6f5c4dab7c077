import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import Docker from 'dockerode';
import { expect, test } from 'vitest';
import { RetryableError } from '../../../../base/errors.ts';
import { ensureImage } from '../../../../gitops/appliers/containers/docker-image.ts';

test('a query for an image ends when it is aborted, even if the engine never answers', async () => {
  await using engine = createServer().listen(0, '127.0.0.1');
  await once(engine, 'listening');
  const { port } = engine.address() as AddressInfo; // it listens on TCP
  const docker = new Docker({ protocol: 'http', host: '127.0.0.1', port });
  const stop = new AbortController();

  const image = `registry.example/tags/server@sha256:${'a'.repeat(64)}`;
  const asked = once(engine, 'request') as Promise<[IncomingMessage]>;
  const had = expect(ensureImage(docker, image, stop.signal)).rejects.toThrow(RetryableError);
  const [question] = await asked;
  expect(question.url).toBe(`/images/${image}/json`);
  const hungUp = once(question.socket, 'close');
  stop.abort();
  await had;
  await hungUp;
});
