import { Home } from './home.ts';
import { mintToken } from './issuer.ts';
import type { CliContext } from './provisioner-client.ts';
import { readRun } from './run-file.ts';

/** The embedded instance's management API, and a function that makes tokens for `subject`. */
export async function embeddedAccess({ home: path }: Pick<CliContext, 'home'>, subject: string) {
  const home = new Home(path);
  const run = await readRun(home.at('run.json'));
  return {
    url: run.management.url,
    // Made for each request, because a program can run for longer than a token is valid.
    token: async () => await mintToken(await home.instance(), subject),
  };
}
