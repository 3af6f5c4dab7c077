import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Settings } from '../../../management/context/context.ts';
import { type MemoryDaemon, memoryDaemon, SECRET } from '../gitops/memory-daemon.ts';
import { type RawLogsBucket, startRawLogs } from '../management/raw-logs.ts';
import { ConsoleStage } from './stage.ts';

interface FullStage {
  readonly stage: ConsoleStage;
  readonly daemon: MemoryDaemon;
  readonly bucket: RawLogsBucket;
  close(): Promise<void>;
}

/** The console beside a provisioner and a bucket of raw logs, so that it has rollouts, searches and sums of traffic. */
export async function openFullStage(settings: Partial<Settings> = {}): Promise<FullStage> {
  const [daemon, bucket, dir] = await Promise.all([
    memoryDaemon(),
    startRawLogs(),
    mkdtemp(join(tmpdir(), 'tagyard-console-search-')),
  ]);
  const stage = await ConsoleStage.open({
    bare: daemon.sitesRepo,
    daemon: { url: await daemon.app.listen({ host: '127.0.0.1', port: 0 }), secret: SECRET },
    rawObjects: bucket.objects,
    settings: { ageRecipient: daemon.recipient, searchCache: { dir, days: 7 }, ...settings },
  });
  const close = async () => {
    await stage.close();
    await Promise.all([daemon.close(), bucket.close()]);
    await rm(dir, { recursive: true, force: true });
  };
  return { stage, daemon, bucket, close };
}
