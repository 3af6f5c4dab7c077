import { extname } from 'node:path';

/**
 * The URL of a source file by its path without extension, relative to the module at `from` (`import.meta.url`). A
 * checkout runs TypeScript, the package JavaScript: the file has the extension of the module.
 */
export function siblingUrl(path: string, from: string): URL {
  return new URL(`${path}${extname(new URL(from).pathname)}`, from);
}
