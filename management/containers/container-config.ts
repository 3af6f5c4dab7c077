import { normaliseContainerConfig } from '../../sites/manifest/container-config.ts';
import { ManagementProblem } from '../http/errors.ts';

/** Throws `invalid_container_config`. The message never quotes the value, because it holds a token. */
export function canonicalConfig(given: string): string {
  const config = normaliseContainerConfig(given);
  if (config.ok) return config.text;
  throw new ManagementProblem('invalid_container_config', {
    detail: `containerConfigB64 ${config.problem}: copy it whole from Tag Manager (Admin, Container settings, Manually provision tagging server)`,
    errors: [{ path: 'containerConfigB64', message: config.problem }],
  });
}
