import { expect, test } from 'vitest';
import { containersApplier } from '../../../../gitops/appliers/containers/applier.ts';
import { containerName } from '../../../../gitops/appliers/containers/desired.ts';
import { GivenUpError, TerminalError } from '../../../../gitops/base/errors.ts';
import { formatMark } from '../../../../gitops/base/ownership.ts';
import { FakeRuntime } from '../../../support/containers/fake-runtime.ts';
import { containersSettings } from '../../../support/containers/stage.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const { signal } = new AbortController();
const REFUSED = 'https://www.googletagmanager.com/server.js?id=x failed with status 403';

test.each([
  ['was healthy', 200, TerminalError],
  ['was not healthy', 503, GivenUpError],
])(
  'a spec whose container %s at an observation fails with the expected error',
  async (_what, status, expected) => {
    await using runtime = new FakeRuntime(() => ({ death: 'exit code 1', lines: [REFUSED] }));
    const settings = containersSettings('seen', '127.98', { giveUpAfter: 3, startupDeadlineMs: 0 });
    const applier = containersApplier(settings, runtime);
    const [wanted] = applier.desired(loadedManifest());
    if (wanted === undefined) throw new Error('the site has no containers');
    const { spec, site, hash } = wanted;
    const { identity } = settings;
    const launch = {
      name: containerName(identity.instance, spec),
      mark: formatMark(identity, site, hash),
      spec,
    };
    // A container that an earlier process has started.
    const found = await runtime.add(launch, { statuses: [status] });
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
