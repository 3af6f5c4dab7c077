import { deepStrictEqual, match, ok, strictEqual } from 'node:assert/strict';
import type { Behaviour } from '../behaviour.ts';
import { ask } from './ask.ts';
import type { ContainerTarget, ServerPair } from './target.ts';

const PREVIEW = 'Tag server image, Preview server';
const START = 'Tag server image, Start and run';

/** Starts a pair, runs `work` with it and stops it. */
function withPair(trusts: boolean, work: (target: ContainerTarget, pair: ServerPair) => Promise<void>) {
  return async (target: ContainerTarget) => {
    const pair = await target.startPair({ trusts });
    try {
      await work(target, pair);
    } finally {
      await pair.stop();
    }
  };
}

function debugPath({ config: { id, auth, env } }: ContainerTarget): string {
  return `/gtm/debug?${new URLSearchParams({ id, gtm_auth: auth, gtm_preview: `env-${env}` })}`;
}

/** Preview servers whose name and CA only their site's processing server knows, as Tagyard runs them. */
export const previewNameBehaviours: readonly Behaviour<ContainerTarget>[] = [
  {
    name: 'hands /gtm/… to a preview server named only in the hosts file, with a CA of NODE_EXTRA_CA_CERTS',
    source: START,
    check: withPair(true, async (target, { tagging, previewHost, handedOver, assertReachable }) => {
      const path = debugPath(target);
      const { status, headers, cookies, text } = await ask(tagging, path);
      if (status !== 200) await assertReachable();
      strictEqual(status, 200, text);
      match(headers['content-type'] ?? '', /^text\/html/);
      ok(
        cookies[0]?.startsWith(`gtm_auth=${target.config.id}=`),
        'the answer lacks the preview server’s cookies',
      );
      const [first] = handedOver();
      deepStrictEqual([first?.method, first?.path, first?.host], ['GET', path, previewHost]);
    }),
  },
  {
    name: 'hands over requests of any method whose path has /gtm/ or ends with /gtm; Forwarded has the host',
    source: PREVIEW,
    check: withPair(true, async (target, { tagging, handedOver, assertReachable }) => {
      const asked = [
        ['GET', '/gtm'],
        ['GET', '/some/gtm'],
        ['GET', '/some/gtm/path?x=1'],
        ['POST', '/gtm/post_memo?auth_code=wrong'],
      ] as const;
      for (const [method, path] of asked) {
        const answer = await ask(tagging, path, { method, ...(method === 'POST' ? { body: '[]' } : {}) });
        if (answer.status === 500) await assertReachable();
        const own = await ask(target.preview, path, { method, ...(method === 'POST' ? { body: '[]' } : {}) });
        deepStrictEqual([answer.status, answer.text], [own.status, own.text], `${method} ${path}`);
      }
      for (const path of ['/gtm.js', '/healthz', '/gtmx/path']) await ask(tagging, path);
      deepStrictEqual(
        handedOver().map(({ method, path }) => [method, path]),
        asked,
      );
      const first = `host=${new URL(tagging).host}`;
      for (const { forwarded = '' } of handedOver()) {
        ok(
          forwarded
            .replaceAll('"', '')
            .split(/[;,]\s*/)
            .includes(first),
          `Forwarded is ${forwarded}`,
        );
      }
    }),
  },
  {
    name: 'answers 500 to /gtm/… where it does not trust the preview server’s CA',
    source: PREVIEW,
    check: withPair(false, async (target, { tagging, handedOver, connections, assertReachable }) => {
      const { status } = await ask(tagging, debugPath(target));
      const own = connections();
      if (own === 0) await assertReachable();
      ok(own > 0, 'it did not connect to the preview server');
      deepStrictEqual([status, handedOver()], [500, []]);
    }),
  },
];
