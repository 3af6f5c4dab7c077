import type { HostReport } from '../../edge/verification/contract.ts';
import { parseContainerConfig } from '../../sites/manifest/container-config.ts';
import type { Secret } from '../../sites/manifest/secrets.ts';

/** Whether the tag server accepts a site's configuration, and for which container it is. */
export function readConfig(secret: Secret): HostReport['config'] {
  const config = parseContainerConfig(secret.reveal());
  return config.ok ? { id: config.id, problem: null } : { id: null, problem: `it ${config.problem}` };
}
