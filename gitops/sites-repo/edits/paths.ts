const POLICY =
  /^(?:policy|clients\/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.policy)\.js$/;

/** The path, if it is that of a policy script (of the instance or of a client); `null`: another file is there. */
export function policyAt(path: string): string | null {
  return POLICY.test(path) ? path : null;
}

/** The path of a file by its name in `SitesRepo`. Of these names, only those of policy scripts have the ending. */
export function pathOf(name: string): string {
  return policyAt(name) ?? `${name}.yaml`;
}
