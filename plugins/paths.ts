/** True if a pattern names the path. A pattern that ends with `/*` names the path before the `/*` and all paths below. */
export function isNamedBy(path: string, patterns: readonly string[]): boolean {
  return patterns.some((own) => (own.endsWith('*') ? `${path}/`.startsWith(own.slice(0, -1)) : own === path));
}
