// The images' health check: `node health.mjs <URL>` asks that URL, and `node health.mjs <run.json>` the management API
// of the instance with that run file.
import { readFileSync } from 'node:fs';

const [argument = ''] = process.argv.slice(2);
const url = argument.endsWith('.json')
  ? `${JSON.parse(readFileSync(argument, 'utf8')).management.url}/readyz`
  : argument;
const { status } = await fetch(url, { signal: AbortSignal.timeout(4_000) });
// A refusal is healthy, too: the verification worker refuses this request, which has no secret.
if (status >= 500) throw new Error(`${url} answers with status ${status}`);
