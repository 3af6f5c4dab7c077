const POLICY =
  /^(?:policy|clients\/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.policy)\.js$/;

/** The path itself if it is that of a policy script (of the instance or of a client); `null`: it is another file's. */
export function policyAt(path: string): string | null {
  return POLICY.test(path) ? path : null;
}

/** The path of a file, from its name in `SitesRepo`. Only the names of policy scripts include the ending. */
export function pathOf(name: string): string {
  return policyAt(name) ?? `${name}.yaml`;
}
