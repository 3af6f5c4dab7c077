import type { CheckContext } from '../check.ts';
import { failed, passed } from '../result.ts';

export function checkHostReport({ host, hostProblem }: CheckContext) {
  if (host !== null) return [passed(null, `${host.host} answered`)];
  return [
    failed(
      null,
      `the host couldn’t be reached: ${hostProblem ?? 'no report came'}`,
      'Check that the provisioner of the site’s host runs and that INFRA_PROVISIONER_URL is its address, then verify again.',
    ),
  ];
}
