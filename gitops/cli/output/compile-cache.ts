import module from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';

/**
 * Keeps the compiled code of this command and of the processes that it starts, in a folder of the user's own: the next
 * start is faster, and a checkout strips the types of each file only once. `NODE_COMPILE_CACHE` names another folder;
 * with `NODE_DISABLE_COMPILE_CACHE=1`, nothing is kept.
 */
export function useCompileCache(env: NodeJS.ProcessEnv = process.env): void {
  const folder = env.NODE_COMPILE_CACHE || defaultFolder(env);
  if (folder === null) return;
  // Where the folder can't be written, Node runs without a cache.
  module.enableCompileCache(folder);
  // The processes that this one starts then use the cache, too.
  env.NODE_COMPILE_CACHE = folder;
}

/** `null`: the system has no entry for the user id, for example in a container. */
function defaultFolder({ XDG_CACHE_HOME }: NodeJS.ProcessEnv): string | null {
  if (XDG_CACHE_HOME) return join(XDG_CACHE_HOME, 'tagyard');
  try {
    return join(homedir(), '.cache', 'tagyard');
  } catch {
    return null;
  }
}
