import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { ContainerLogs } from '../../../gitops/container-logs/container-logs.ts';
import type { Settings } from '../../../management/context/context.ts';
import { type LoopOptions, type MemoryDaemon, memoryDaemon, SECRET } from '../gitops/memory-daemon.ts';
import { type RawLogsBucket, startRawLogs } from '../management/raw-logs.ts';
import { WORLD_ZONES } from '../management/world.ts';
import { ConsoleStage } from './stage.ts';

interface FullStage {
  readonly stage: ConsoleStage;
  readonly daemon: MemoryDaemon;
  readonly bucket: RawLogsBucket;
  /** The store of what the containers print; `null`: requests for it fail, because the host is away. */
  readonly printed: { store: ContainerLogs | null };
  /** Keeps these lines of a site, as if its container had printed them. */
  print(site: string, ...texts: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** The console beside a provisioner and a bucket of raw logs, so that it has rollouts, searches and sums of traffic. */
export async function openFullStage(settings: Partial<Settings> = {}): Promise<FullStage> {
  const dir = await mkdtemp(join(tmpdir(), 'tagyard-console-'));
  const store = new ContainerLogs({
    ...{ dir: join(dir, 'printed'), kept: 'all', keepDays: 7, megabytes: 1, linesPerSecond: 1_000 },
    log: { warn: (_fields, message) => expect.fail(message) },
  });
  await store.open();
  const printed: FullStage['printed'] = { store };
  const logs = () => {
    if (printed.store === null) throw new Error('the host is away');
    return printed.store;
  };
  const containerLogs: LoopOptions['containerLogs'] = {
    page: (...call) => logs().page(...call),
    newer: (...call) => logs().newer(...call),
    deleteUntil: (...call) => logs().deleteUntil(...call),
    refusals: () => logs().refusals(),
  };
  const [daemon, bucket] = await Promise.all([
    memoryDaemon({ containerLogs, zones: WORLD_ZONES }),
    startRawLogs(),
  ]);
  const stage = await ConsoleStage.open({
    bare: daemon.sitesRepo,
    daemon: { url: await daemon.app.listen({ host: '127.0.0.1', port: 0 }), secret: SECRET },
    rawObjects: bucket.objects,
    settings: {
      ageRecipient: daemon.recipient,
      searchCache: { dir: join(dir, 'search'), days: 7 },
      ...settings,
    },
  });
  const close = async () => {
    await stage.close();
    await Promise.all([daemon.close(), bucket.close()]);
    await store.close();
    await rm(dir, { recursive: true, force: true });
  };
  const print = async (site: string, ...texts: readonly string[]) => {
    const time = new Date().toISOString();
    const lines = texts.map((text) => ({ stream: 'stdout' as const, time, text, position: null }));
    await store.write({ site, id: 'one', place: 'processing/0' }, lines);
  };
  return { stage, daemon, bucket, printed, print, close };
}
