import type * as Esbuild from 'esbuild';

/** Loads esbuild when something is bundled. Its process ends with this one. */
export async function loadEsbuild(): Promise<typeof Esbuild> {
  return await import('esbuild').catch((cause: unknown) => {
    throw new Error('bundling needs the package esbuild: npm install --save-dev esbuild', { cause });
  });
}
