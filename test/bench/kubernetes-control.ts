import { readFile } from 'node:fs/promises';
import pLimit from 'p-limit';
import { Agent } from 'undici';
import { z } from 'zod';
import { addressOf, objectPath } from '../../gitops/kubernetes/client/address.ts';
import { serveChild } from './kubernetes-child.ts';
import { renderedSites, siteOf } from './kubernetes-sites.ts';

/** The number of concurrent calls that was the fastest on two cores. */
const AT_ONCE = 12;
const kubeconfig = z.object({
  clusters: z.tuple([
    z.object({ cluster: z.object({ server: z.string(), 'certificate-authority': z.string() }) }),
  ]),
  users: z.tuple([z.object({ user: z.object({ token: z.string() }) })]),
});

/** The control: sends what the appliers render, by bare server-side applies. */
await serveChild(async ({ kubeconfig: file, sites }) => {
  const read = kubeconfig.parse(JSON.parse(await readFile(file, 'utf8')));
  const [{ cluster }] = read.clusters;
  const [{ user }] = read.users;
  const dispatcher = new Agent({
    connections: AT_ONCE,
    connect: { ca: await readFile(cluster['certificate-authority'], 'utf8') },
  });
  const objects = renderedSites(Array.from({ length: sites }, (_, number) => siteOf(number)));
  const calls = objects.map((object) => ({
    isFirst: object.kind === 'Namespace',
    path: objectPath(addressOf(object)),
    body: JSON.stringify(object),
  }));
  const headers = {
    authorization: `Bearer ${user.token}`,
    'content-type': 'application/apply-patch+yaml',
  };
  const limit = pLimit(AT_ONCE);
  const send = (some: typeof calls) =>
    Promise.all(
      some.map(({ path, body }) =>
        limit(async () => {
          const { statusCode, body: answer } = await dispatcher.request({
            origin: cluster.server,
            path: `${path}?fieldManager=tagyard&force=true`,
            method: 'PATCH',
            headers,
            body,
          });
          const text = await answer.text();
          if (statusCode >= 300) throw new Error(`${path}: ${statusCode} ${text}`);
        }),
      ),
    );
  return {
    async run() {
      await send(calls.filter(({ isFirst }) => isFirst));
      await send(calls.filter(({ isFirst }) => !isFirst));
      return 0;
    },
  };
});
