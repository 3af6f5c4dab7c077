import type * as Esbuild from 'esbuild';

/** esbuild's process takes 60 MB of memory, so it ends this many milliseconds after the last bundle. */
const IDLE_MS = 500;

let bundling = 0;
let idle: NodeJS.Timeout | undefined;

/**
 * Runs `work` with esbuild, which is loaded for it and ended after it. All bundles of a process are made by this
 * function, because a bundle that is being made when esbuild's process ends would never be complete.
 */
export async function withEsbuild<Result>(
  work: (esbuild: typeof Esbuild) => Promise<Result>,
): Promise<Result> {
  clearTimeout(idle);
  bundling += 1;
  try {
    const esbuild = await import('esbuild').catch(missing);
    try {
      return await work(esbuild);
    } finally {
      // `bundling` also counts a concurrent call that still waits for its import.
      if (bundling === 1) idle = setTimeout(() => void esbuild.stop(), IDLE_MS).unref();
    }
  } finally {
    bundling -= 1;
  }
}

function missing(cause: unknown): never {
  throw new Error('bundling needs the package esbuild: npm install --save-dev esbuild', { cause });
}
