import { expect, test } from 'vitest';
import { GivenUpError, RetryableError, TerminalError } from '../../../../base/errors.ts';
import { formatMark, type Identity } from '../../../../base/ownership.ts';
import { containersApplier } from '../../../../gitops/appliers/containers/applier.ts';
import { containerName } from '../../../../gitops/appliers/containers/desired.ts';
import type { Launch } from '../../../../gitops/appliers/containers/runtime.ts';
import type { Resource } from '../../../../gitops/appliers/contract.ts';
import type { ContainerSpec, LoadedManifest } from '../../../../sites/manifest/containers.ts';
import { FakeRuntime } from '../../../support/containers/fake-runtime.ts';
import { containersSettings } from '../../../support/containers/stage.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const { signal } = new AbortController();
const REFUSED = 'https://www.googletagmanager.com/server.js?id=x failed with status 403';

function firstOf(resources: readonly Resource<ContainerSpec>[]): Resource<ContainerSpec> {
  const [first] = resources;
  if (first === undefined) throw new Error('the site has no containers');
  return first;
}

function launchOf(identity: Identity, { spec, site, hash }: Resource<ContainerSpec>): Launch {
  return { name: containerName(identity.instance, spec), mark: formatMark(identity, site, hash), spec };
}

test.each([
  ['was healthy', 200, TerminalError],
  ['was not healthy', 503, GivenUpError],
])(
  '`apply` throws the expected error for a spec whose container %s when observed',
  async (_what, status, expected) => {
    await using runtime = new FakeRuntime(() => ({ death: 'exit code 1', lines: [REFUSED] }));
    const settings = containersSettings('seen', '127.98', { giveUpAfter: 3, startupDeadlineMs: 0 });
    const applier = containersApplier(settings, runtime);
    const wanted = firstOf(applier.desired(loadedManifest()));
    // A container that an earlier process has started.
    const found = await runtime.add(launchOf(settings.identity, wanted), { statuses: [status] });
    await applier.observe([wanted], signal);
    await runtime.remove(found);
    const change = applier.plan([wanted], await applier.observe([wanted], signal)).changes[0];
    if (change === undefined) throw new Error('there is no change');
    const errors: unknown[] = [];
    for (let time = 0; time < 3; time += 1) {
      errors.push(await applier.apply(change, signal).catch((error: unknown) => error));
    }
    expect((errors.at(-1) as Error).constructor).toBe(expected); // `apply` throws errors only
  },
);

test('a replacement that is removed before the observation ends doesn’t count as seen healthy', async () => {
  const seen = Promise.withResolvers<void>();
  const oldIsProbed = Promise.withResolvers<number>();
  let observing: Promise<unknown> | undefined;
  // A replacement is healthy, then fails in its steady time; the observation finds it healthy again.
  const statuses = [
    200,
    503,
    async () => {
      seen.resolve();
      return 200;
    },
  ];
  await using runtime = new (class extends FakeRuntime {
    override async lastLines(id: string) {
      observing ??= applier.observe([wanted], signal);
      await seen.promise;
      return await super.lastLines(id);
    }
  })(() => ({ statuses, lines: [REFUSED] }));
  const settings = containersSettings('busy', '127.98', { giveUpAfter: 3, startupDeadlineMs: 0 });
  const applier = containersApplier(settings, runtime);
  const one = (manifest: LoadedManifest) => firstOf(applier.desired(manifest));
  const old = launchOf(settings.identity, one(loadedManifest()));
  await runtime.add(old, { statuses: [() => oldIsProbed.promise] });
  const wanted = one({ ...loadedManifest(), image: 'tag-server:next' });
  const { key, site } = wanted;
  const change = { target: 'containers', op: 'create', key, site, summary: key, desired: wanted } as const;
  const errors: unknown[] = [];
  for (let time = 0; time < 3; time += 1) {
    errors.push(await applier.apply(change, signal).catch((error: unknown) => error));
    oldIsProbed.resolve(200);
    await observing;
  }
  expect(errors.map((error) => (error as Error).constructor)).toEqual([
    RetryableError,
    RetryableError,
    GivenUpError,
  ]);
});
