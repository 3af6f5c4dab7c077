import { escapeHiddenIn } from '../../../base/text.ts';
import { fetchWhole } from '../instance/fetch-whole.ts';
import { problemOf } from '../instance/problem.ts';
import { CliError } from '../output/cli-error.ts';
import type { ApiTool } from './tools.ts';

/** The API that the tools call. */
export interface ToolTarget {
  readonly url: string;
  /** The token of the next request. */
  token(): Promise<string>;
  /** Milliseconds until an answer is given up. */
  readonly timeoutMs: number;
  /** A longer answer is cut. */
  readonly mostCharacters: number;
}

const NAME = 'the management API';

/** Calls the tool's operation. Returns its answer as text. Throws `CliError` with the problem if it isn't a 2xx. */
export async function callTool(
  tool: ApiTool,
  given: Readonly<Record<string, unknown>>,
  target: ToolTarget,
): Promise<string> {
  const service = { name: NAME, url: target.url };
  const request = requestOf(tool, given, target.url);
  request.headers.set('authorization', `Bearer ${await target.token()}`);
  const response = await fetchWhole(service, request, target.timeoutMs);
  const text = await response.text();
  const body = parsed(text);
  if (!response.ok) throw problemOf(service, response.status, body);
  const shown = body === null ? text : JSON.stringify(escapeHiddenIn(body), null, 1);
  const etag = response.headers.get('etag');
  return bounded(shown === '' ? `done (${response.status})` : shown, target.mostCharacters).concat(
    etag === null ? '' : `\n\nif-match for the next change: ${etag}`,
  );
}

function requestOf(tool: ApiTool, given: Readonly<Record<string, unknown>>, base: string): Request {
  const names = tool.arguments.map(({ name }) => name);
  const unknown = Object.keys(given).filter((name) => !names.includes(name));
  if (unknown.length > 0) {
    const known = names.length === 0 ? 'it takes none' : `it takes ${names.join(', ')}`;
    throw new CliError(`${tool.name} has no argument ${unknown.join(', ')}: ${known}`);
  }
  const missing = tool.arguments.filter(({ name, required }) => required && given[name] === undefined);
  if (missing.length > 0) {
    throw new CliError(`${tool.name} needs ${missing.map(({ name }) => name).join(', ')}`);
  }
  const present = tool.arguments.filter(({ name }) => given[name] !== undefined);
  const at = (place: string) =>
    present.filter((one) => one.in === place).map(({ name }) => [name, textOf(given[name])] as const);
  const path = at('path').reduce(
    (text, [name, value]) => text.replace(`{${name}}`, () => segmentOf(name, value)),
    tool.path,
  );
  const query = new URLSearchParams(Object.fromEntries(at('query')));
  const url = `${base.replace(/\/+$/, '')}${path}${query.size === 0 ? '' : `?${query}`}`;
  const { body } = given;
  const hasBody = tool.arguments.some((one) => one.in === 'body') && body !== undefined;
  return new Request(url, {
    method: tool.method,
    headers: {
      accept: 'application/json',
      ...Object.fromEntries(at('header').map(([name, value]) => [name, headerOf(name, value)])),
      ...(hasBody ? { 'content-type': 'application/json' } : {}),
    },
    ...(hasBody ? { body: JSON.stringify(body) } : {}),
  });
}

/** A URL drops the segments `.` and `..`, also encoded ones, so the request would go to another address. */
function segmentOf(name: string, value: string): string {
  if (value === '' || value === '.' || value === '..')
    throw new CliError(`${name} can't be ${JSON.stringify(value)}`);
  return encodeURIComponent(value);
}

function headerOf(name: string, value: string): string {
  if (/^[\x20-\x7e]*$/.test(value)) return value;
  throw new CliError(`${name} has a character that a header can't carry`);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function bounded(text: string, most: number): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most)}\n\n[cut after ${most} of ${text.length} characters: ask for less, for example with limit, or for one item]`;
}
