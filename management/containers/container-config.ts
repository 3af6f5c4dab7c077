import { ProblemError } from '../http/errors.ts';

const PARAMETERS = ['id', 'env', 'auth'] as const;

/**
 * Checks a CONTAINER_CONFIG as Tag Manager shows it: base64 of a URL query in which `id`, `env` and `auth` stand once
 * each and aren't empty; the tag server's image refuses to start on anything else. The answer is the text to encrypt.
 * Messages never quote the value: it holds a token.
 */
export function validateContainerConfig(text: string): string {
  const base64 = text.trim();
  const query = decode(base64);
  if (query === null) throw invalid('is not base64 text');
  const parameters = new URLSearchParams(query);
  for (const name of PARAMETERS) {
    const values = parameters.getAll(name);
    if (values.length === 0) throw invalid(`has no ${name}`);
    if (values.length > 1) throw invalid(`has more than one ${name}`);
    if (values[0] === '') throw invalid(`has an empty ${name}`);
  }
  return base64;
}

function decode(base64: string): string | null {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(base64, 'base64'));
  } catch {
    // Not UTF-8: it may be base64, but never of a query.
    return null;
  }
}

function invalid(what: string): ProblemError {
  return new ProblemError('invalid_container_config', `containerConfigB64 ${what}`, {
    errors: [{ path: 'containerConfigB64', message: what }],
  });
}
