import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A PATH whose git runs the hooks of a repository, also of a remote on this machine: Tagyard switches them off. Processes
 * that are started with it use it, too.
 */
export function pathWithHooks(dir: string): string {
  const bin = join(dir, 'bin');
  const script = `#!/bin/sh
for arg; do
  shift
  case $arg in
    *core.hooksPath=/dev/null*)
      arg="\${arg%%core.hooksPath=*}core.hooksPath=hooks\${arg#*core.hooksPath=/dev/null}" ;;
  esac
  set -- "$@" "$arg"
done
PATH='${process.env.PATH}' exec git "$@"
`;
  mkdirSync(bin);
  writeFileSync(join(bin, 'git'), script, { mode: 0o755 });
  return `${bin}:${process.env.PATH}`;
}
