import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'vitest';
import { RetryableError } from '../../../base/errors.ts';
import { containersApplier } from '../../../gitops/appliers/containers/applier.ts';
import { KeyFiles } from '../../../gitops/appliers/containers/key-files.ts';
import { processRuntime } from '../../../gitops/appliers/containers/process/runtime.ts';
import type { Runtime } from '../../../gitops/appliers/containers/runtime.ts';
import { TAG_SERVER_ENTRY } from '../../../sites/local/demo/tag-server/entry.ts';
import { applierConformance, CONFORMANCE_IDENTITY } from '../../gitops/appliers/conformance.ts';
import { containersBehaviour } from '../../support/containers/behaviour.ts';
import { childBySlot } from '../../support/containers/child-by-slot.ts';
import { containersLifecycle } from '../../support/containers/lifecycle.ts';
import { containersSettings } from '../../support/containers/stage.ts';
import { signal } from '../../support/signal.ts';
import { containerSecret } from '../../support/tag-server.ts';

const SETTINGS = containersSettings('test-procs', '127.81');

describe('containers as child processes', () => {
  const setup = async () => {
    const home = await mkdtemp(join(tmpdir(), 'tagyard-procs-'));
    const keyFiles = new KeyFiles(join(home, 'keys'), null);
    const runtime = processRuntime({ entry: TAG_SERVER_ENTRY, stopGraceSeconds: 1, keyFiles });
    const processOf = async (name: string) => {
      const found = (await runtime.list(new Set(), AbortSignal.abort())).find((each) => each.name === name);
      return childBySlot(found?.endpoint ?? null);
    };
    const signalTo = async (name: string, signalName: NodeJS.Signals) =>
      signal(await processOf(name), signalName);
    return {
      runtime,
      image: `sha256:${'a'.repeat(64)}`,
      kill: (name: string) => signalTo(name, 'SIGKILL'),
      freeze: (name: string) => signalTo(name, 'SIGSTOP'),
      async account(name: string) {
        const environment = await readFile(`/proc/${await processOf(name)}/environ`, 'utf8');
        const lines = environment.split('\0').map((line) => line.split('=') as [string, string]);
        const env = Object.fromEntries(lines);
        const file = await readFile(env.GOOGLE_APPLICATION_CREDENTIALS ?? '', 'utf8');
        return { file, project: env.GOOGLE_CLOUD_PROJECT ?? '' };
      },
      keys: () => keyFiles.names(),
      async close() {
        await runtime.close();
        await rm(home, { recursive: true });
      },
    };
  };
  containersBehaviour(SETTINGS, setup);
  containersLifecycle(SETTINGS, setup);
});

applierConformance(
  'the containers applier with child processes',
  async () => {
    const runtime = processRuntime({ entry: TAG_SERVER_ENTRY });
    let broken = false;
    // A fault between a process and its own children can't be provoked, so the runtime simulates it.
    const faulty: Runtime = {
      ...runtime,
      list: async (names, signal) => {
        if (broken) throw new RetryableError('the processes can’t be listed');
        return await runtime.list(names, signal);
      },
    };
    return {
      applier: containersApplier({ ...SETTINGS, identity: CONFORMANCE_IDENTITY }, faulty),
      async breakObserve() {
        broken = true;
        return async () => {
          broken = false;
        };
      },
      close: () => runtime.close(),
    };
  },
  { change: (manifest) => ({ ...manifest, config: containerSecret({ env: '2' }) }), timeoutMs: 60_000 },
);
