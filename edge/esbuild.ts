import type * as Esbuild from 'esbuild';

/** esbuild's process has 60 MB. It ends this long after the last bundle, milliseconds. */
const IDLE_MS = 500;

let bundling = 0;
let idle: NodeJS.Timeout | undefined;

/**
 * Runs `work` with esbuild, which is loaded for it and ended after it. All bundles of a process are made by this function: the
 * end of esbuild's process would keep a bundle that is being made elsewhere waiting for ever.
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
      // Another one that waits for its import has been counted already.
      if (bundling === 1) idle = setTimeout(() => void esbuild.stop(), IDLE_MS).unref();
    }
  } finally {
    bundling -= 1;
  }
}

function missing(cause: unknown): never {
  throw new Error('bundling needs the package esbuild: npm install --save-dev esbuild', { cause });
}
