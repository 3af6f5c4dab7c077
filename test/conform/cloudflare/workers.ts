import assert from 'node:assert/strict';
import { z } from 'zod';
import type { Behaviour } from '../behaviour.ts';
import { assertRefused, type CloudflareTarget, call, createdId, succeed } from './target.ts';

const source = 'Cloudflare API';
const settings = z.looseObject({ bindings: z.array(z.looseObject({ name: z.string(), type: z.string() })) });
const deployments = z.object({
  deployments: z.array(z.object({ versions: z.array(z.object({ percentage: z.number() })) })),
});

const scriptPath = ({ account, prefix }: CloudflareTarget) =>
  `/accounts/${account}/workers/scripts/${prefix}-worker`;

/** Uploads a worker, runs `work` and deletes it. */
function withScript(work: (target: CloudflareTarget) => Promise<void>) {
  return async (target: CloudflareTarget) => {
    const form = new FormData();
    const metadata = {
      main_module: 'worker.js',
      compatibility_date: '2026-01-01',
      bindings: [
        { type: 'plain_text', name: 'PLAIN', text: 'plain' },
        { type: 'secret_text', name: 'SECRET', text: 'hidden' },
      ],
    };
    form.set('metadata', new Blob([JSON.stringify(metadata)], { type: 'application/json' }));
    const code = 'export default { fetch: () => new Response("ok") };';
    form.set('worker.js', new File([code], 'worker.js', { type: 'application/javascript+module' }));
    await succeed(target, 'PUT', scriptPath(target), form);
    try {
      await work(target);
    } finally {
      await call(target, 'DELETE', scriptPath(target));
    }
  };
}

function withRoute(work: (target: CloudflareTarget, path: string, pattern: string) => Promise<void>) {
  return async (target: CloudflareTarget) => {
    const path = `/zones/${target.zone.id}/workers/routes`;
    const pattern = `${target.prefix}.${target.zone.name}/*`;
    // A route without a script is a bypass.
    const id = await createdId(target, 'POST', path, { pattern });
    try {
      await work(target, path, pattern);
    } finally {
      await call(target, 'DELETE', `${path}/${id}`);
    }
  };
}

export const workerBehaviours: readonly Behaviour<CloudflareTarget>[] = [
  {
    name: 'refuses a second route with the same pattern',
    source,
    check: withRoute(async (target, path, pattern) => {
      assertRefused(await call(target, 'POST', path, { pattern }), 409, 10020);
    }),
  },
  {
    name: 'answers 10009 for a route that is not there',
    source,
    async check(target) {
      const path = `/zones/${target.zone.id}/workers/routes`;
      const pattern = `gone-${target.prefix}.${target.zone.name}/*`;
      const id = await createdId(target, 'POST', path, { pattern });
      await succeed(target, 'DELETE', `${path}/${id}`);
      assertRefused(await call(target, 'DELETE', `${path}/${id}`), 404, 10009);
    },
  },
  {
    name: 'refuses a route with a star inside its path',
    source,
    async check(target) {
      const pattern = `${target.prefix}.${target.zone.name}/*/b`;
      assertRefused(
        await call(target, 'POST', `/zones/${target.zone.id}/workers/routes`, { pattern }),
        400,
        10022,
      );
    },
  },
  {
    name: 'answers 10007 for the settings of a worker that is not there',
    source,
    async check(target) {
      assertRefused(await call(target, 'GET', `${scriptPath(target)}-absent/settings`), 404, 10007);
    },
  },
  {
    name: 'answers the bindings of an uploaded worker without the values of secrets',
    source,
    check: withScript(async (target) => {
      const { bindings } = settings.parse(await succeed(target, 'GET', `${scriptPath(target)}/settings`));
      const byName = new Map(bindings.map((binding) => [binding.name, binding]));
      assert.equal(byName.get('PLAIN')?.text, 'plain');
      assert.equal(byName.get('SECRET')?.type, 'secret_text');
      assert.equal(byName.get('SECRET')?.text, undefined);
    }),
  },
  {
    name: 'deploys an upload to 100 % of the traffic',
    source,
    check: withScript(async (target) => {
      const answer = deployments.parse(await succeed(target, 'GET', `${scriptPath(target)}/deployments`));
      assert.deepEqual(
        answer.deployments[0]?.versions.map(({ percentage }) => percentage),
        [100],
      );
    }),
  },
];
