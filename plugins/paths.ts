/** True where one of `patterns` names the path. One that ends with `/*` names the path before it and all below. */
export function isNamedBy(path: string, patterns: readonly string[]): boolean {
  return patterns.some((own) => (own.endsWith('*') ? `${path}/`.startsWith(own.slice(0, -1)) : own === path));
}
