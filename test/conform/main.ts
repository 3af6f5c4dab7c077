import { conform } from './command.ts';
import { readEnv, secretsOf } from './env.ts';
import { redactor } from './report.ts';

/**
 * `npm run conform -- --image <reference> | --cloudflare [address] | --google [address]` (docs/conformance.md). A signal
 * ends the run early: what it made is removed, and the rest is not tried. A second one ends the process at once.
 */
const env = readEnv(process.env);
const redact = redactor(secretsOf(env));
const interrupted = new AbortController();
let isBroken = false;

for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(name, () => {
    if (interrupted.signal.aborted) {
      process.stderr.write('conform: ended at once; docs/conformance.md says what may remain\n');
      process.exit(130);
    }
    process.stderr.write('conform: interrupted; removing what this run made\n');
    interrupted.abort();
  });
}
// What the run made must be removed, also after a fault of its own.
for (const name of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(name, (error: unknown) => {
    isBroken = true;
    process.stderr.write(redact(`conform: ${error instanceof Error ? error.stack : String(error)}\n`));
    interrupted.abort();
  });
}
// The reader of the output may end first.
process.stdout.on('error', () => interrupted.abort());

const code = await conform(process.argv.slice(2), {
  env,
  signal: interrupted.signal,
  write: (text) => process.stdout.write(text),
});
// Ends the process explicitly: a connection that a behaviour kept open would keep it running.
process.exit(isBroken ? 1 : code);
