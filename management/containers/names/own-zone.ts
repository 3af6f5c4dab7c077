import type { FieldError } from '../../../base/http/problem.ts';
import { type OwnZones, ownZoneProblem } from '../../../sites/manifest/own-zones.ts';
import { ManagementProblem } from '../../http/errors.ts';

/** Throws if a name belongs to this installation. `pathOf` maps a name's index to its path in the request. */
export function refuseOwnZone(
  zones: OwnZones,
  names: readonly string[],
  pathOf: (index: number) => string,
): void {
  const errors = names.flatMap((name, index): FieldError[] => {
    const problem = ownZoneProblem(name, zones);
    return problem === null ? [] : [{ path: pathOf(index), message: problem }];
  });
  const [first] = errors;
  if (first !== undefined) {
    throw new ManagementProblem('invalid_request', { detail: `${first.path} ${first.message}`, errors });
  }
}
