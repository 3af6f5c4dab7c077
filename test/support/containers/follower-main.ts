import Docker from 'dockerode';
import { dockerRuntime } from '../../../gitops/appliers/containers/docker-runtime.ts';
import { followedRuntime } from '../../../gitops/appliers/containers/followed-runtime.ts';
import { ContainerLogs } from '../../../gitops/container-logs/container-logs.ts';

/** Follows the containers of an instance, as the provisioner does: `node follower-main.ts <folder> <instance>`. */
const [dir = '', instance = ''] = process.argv.slice(2);
const log = { warn: (fields: object, message: string) => console.error(message, fields) };
const sink = new ContainerLogs({ dir, kept: 'all', keepDays: 7, megabytes: 8, linesPerSecond: 1_000, log });
await sink.open();
const runtime = followedRuntime(dockerRuntime({ docker: new Docker() }), {
  identity: { instance, host: 'tag-1' },
  sink,
  log,
});
process.once('SIGTERM', async () => {
  await runtime.close();
  await sink.close();
  process.exit(0);
});
await runtime.list(new Set(), AbortSignal.timeout(10_000));
process.stdout.write('ready\n');
setInterval(() => undefined, 60_000);
