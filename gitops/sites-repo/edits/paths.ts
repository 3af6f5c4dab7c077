const POLICY =
  /^(?:policy|clients\/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.policy)\.js$/;

/** A policy script, of the instance or of a client: its path; `null`: another file. */
export function policyAt(path: string): string | null {
  return POLICY.test(path) ? path : null;
}

/** The path of a file by the name that the sites repository has for it: a policy script's name has its ending. */
export function pathOf(name: string): string {
  return policyAt(name) ?? `${name}.yaml`;
}
