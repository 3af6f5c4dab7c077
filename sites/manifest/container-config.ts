import { parse } from 'node:querystring';

const PARAMETERS = ['id', 'env', 'auth'] as const;

/** A CONTAINER_CONFIG that the tag server accepts, with its container id; or what is wrong with it. */
type ConfigVerdict =
  | { readonly ok: true; readonly text: string; readonly id: string }
  | { readonly ok: false; readonly problem: string };

/**
 * Judges a CONTAINER_CONFIG as the tag server's image does, which exits on an invalid one: canonical base64 of a URL
 * query with exactly one non-empty `id`, `env` and `auth` (docs/facts.md). A problem never quotes the value, because it
 * holds a token.
 */
export function parseContainerConfig(text: string): ConfigVerdict {
  const query = decode(text);
  if (query === null) return { ok: false, problem: 'is not base64 text' };
  const parameters = parse(query);
  const missing = PARAMETERS.filter((name) => parameters[name] === undefined);
  if (missing.length > 0) return { ok: false, problem: `has no ${missing.join(', ')}` };
  for (const name of PARAMETERS) {
    if (Array.isArray(parameters[name])) return { ok: false, problem: `has more than one ${name}` };
    if (parameters[name] === '') return { ok: false, problem: `has an empty ${name}` };
  }
  return { ok: true, text, id: String(parameters.id) };
}

/**
 * Converts a CONTAINER_CONFIG to the canonical form, without which the image doesn't start, and judges that. Accepts
 * whitespace (`base64` ends its output with a line break), the base64url alphabet and missing padding.
 */
export function canonicalContainerConfig(given: string): ConfigVerdict {
  const digits = given
    .replace(/\s+/g, '')
    .replaceAll('-', '+')
    .replaceAll('_', '/')
    .replace(/^([^=]*)={1,2}$/, '$1');
  return parseContainerConfig(digits.padEnd(Math.ceil(digits.length / 4) * 4, '='));
}

/** Converts a pasted CONTAINER_CONFIG to the canonical form, and judges its values, too. */
export function normaliseContainerConfig(given: string): ConfigVerdict {
  const config = canonicalContainerConfig(given);
  return config.ok ? judgeValues(config) : config;
}

/**
 * The values as Tag Manager generates them. The image accepts others too, but then never gets its container from
 * Google.
 */
const VALUES = [
  ['id', /^GTM-[A-Z0-9]{1,20}$/, 'must be a container id like GTM-ABC1234'],
  ['env', /^[1-9][0-9]{0,8}$/, 'must be the number of an environment, 1 or more'],
  ['auth', /^[\x21-\x7e]{1,512}$/, 'must consist of printable characters without spaces'],
] as const;

function judgeValues(config: Extract<ConfigVerdict, { ok: true }>): ConfigVerdict {
  const parameters = parse(decode(config.text) ?? '');
  const wrong = VALUES.find(([name, pattern]) => !pattern.test(String(parameters[name])));
  return wrong === undefined ? config : { ok: false, problem: `has a wrong ${wrong[0]}: it ${wrong[2]}` };
}

/** The text that canonical base64 encodes; `null`: it is not canonical, or what it encodes is not UTF-8. */
function decode(base64: string): string | null {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length === 0 || bytes.toString('base64') !== base64) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
