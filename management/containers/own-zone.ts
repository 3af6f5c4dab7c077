import type { FieldError } from '../../gitops/base/problem.ts';
import { isWithinDomain } from '../../gitops/manifest/schema.ts';
import type { Settings } from '../context/context.ts';
import { ManagementProblem } from '../http/errors.ts';

/**
 * Throws where a name lies in one of the zones from which sites get their own hostnames: a caller could otherwise take
 * the hostname of a future site. `pathOf` gives the path in the request of the name at an index.
 */
export function refuseOwnZone(
  { edgeDomain, originDomain }: Pick<Settings, 'edgeDomain' | 'originDomain'>,
  names: readonly string[],
  pathOf: (index: number) => string,
): void {
  const errors = names.flatMap((name, index): FieldError[] => {
    const zone = [edgeDomain, originDomain].find((own) => isWithinDomain(name, own));
    return zone === undefined
      ? []
      : [{ path: pathOf(index), message: `is in ${zone}, where sites get their own hostnames` }];
  });
  const [first] = errors;
  if (first !== undefined) {
    throw new ManagementProblem('invalid_request', { detail: `${first.path} ${first.message}`, errors });
  }
}
