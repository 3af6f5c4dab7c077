import { type LoopOptions, type MemoryDaemon, memoryDaemon, SECRET } from '../gitops/memory-daemon.ts';
import { WORLD_ZONES, World, type WorldOptions } from './world.ts';

/** A management API beside a real provisioner on one repository; the objects of its targets are in memory. */
export async function provisionedWorld(
  options: WorldOptions = {},
  ofDaemon: LoopOptions = {},
): Promise<{ world: World; daemon: MemoryDaemon; close: () => Promise<void> }> {
  const daemon = await memoryDaemon({ ...ofDaemon, zones: WORLD_ZONES });
  const url = await daemon.app.listen({ host: '127.0.0.1', port: 0 });
  const world = await World.open({
    ...options,
    bare: daemon.sitesRepo,
    daemon: { url, secret: SECRET },
    settings: { ageRecipient: daemon.recipient, ...options.settings },
  });
  const close = async () => {
    await world.close();
    await daemon.close();
  };
  return { world, daemon, close };
}
