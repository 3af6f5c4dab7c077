import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from '../kubernetes/machine.ts';

const MODULE = fileURLToPath(new URL('../../gateway/gateway-api', import.meta.url));

/** The folder with the definitions of the Gateway API's standard channel, from Go's module cache. */
export async function gatewayApiDefinitions(): Promise<string> {
  const folder = await run(
    ...(['env', '-C', MODULE, 'go', 'mod', 'download', '-json'] as const),
    'sigs.k8s.io/gateway-api',
  );
  return join(JSON.parse(folder).Dir, 'config/crd/standard');
}
