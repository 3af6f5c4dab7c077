// The images' health check: `node health.mjs <URL>`, or the run.json of a whole instance, whose management is asked.
import { readFileSync } from 'node:fs';

const [argument = ''] = process.argv.slice(2);
const url = argument.endsWith('.json')
  ? `${JSON.parse(readFileSync(argument, 'utf8')).management.url}/readyz`
  : argument;
const { status } = await fetch(url, { signal: AbortSignal.timeout(4_000) });
// The verification worker refuses a request without its secret: it answers.
if (status >= 500) throw new Error(`${url} answers with status ${status}`);
