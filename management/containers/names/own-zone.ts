import type { FieldError } from '../../../gitops/base/http/problem.ts';
import { isWithinDomain, registrableDomain } from '../../../gitops/manifest/schema.ts';
import type { Settings } from '../../context/context.ts';
import { ManagementProblem } from '../../http/errors.ts';

type Zones = Pick<Settings, 'edgeDomain' | 'originDomain' | 'platformDomains'>;

/**
 * Throws if a name belongs to this installation. Such a name is in or above a zone of sites' hostnames or a platform
 * domain, or in the registrable domain of one. With it, a caller could take the hostname of a future site, or set
 * cookies for all sites. `pathOf` maps a name's index to its path in the request.
 */
export function refuseOwnZone(
  zones: Zones,
  names: readonly string[],
  pathOf: (index: number) => string,
): void {
  const errors = names.flatMap((name, index): FieldError[] => {
    const problem = problemOf(name, zones);
    return problem === null ? [] : [{ path: pathOf(index), message: problem }];
  });
  const [first] = errors;
  if (first !== undefined) {
    throw new ManagementProblem('invalid_request', { detail: `${first.path} ${first.message}`, errors });
  }
}

function problemOf(name: string, { edgeDomain, originDomain, platformDomains }: Zones): string | null {
  const siteZone = [edgeDomain, originDomain].find((zone) => isWithinDomain(name, zone));
  if (siteZone !== undefined) return `is in ${siteZone}, where sites get their own hostnames`;
  const zone = [edgeDomain, originDomain, ...platformDomains].find(
    (own) => isWithinDomain(name, registrableDomain(own) ?? own) || isWithinDomain(own, name),
  );
  return zone === undefined ? null : `belongs to this installation, like ${zone}`;
}
