import { parse } from 'node:querystring';
import type { HostReport } from '../../edge/verification/contract.ts';
import type { Secret } from '../manifest/secrets.ts';

/**
 * Reads a CONTAINER_CONFIG: Base64 of a query with exactly one non-empty `id`, `env` and `auth` (docs/facts.md, Google's
 * image).
 */
export function readConfig(config: Secret): HostReport['config'] {
  const text = config.reveal();
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(text)) return { id: null, problem: 'it isn’t Base64' };
  const query = parse(Buffer.from(text, 'base64').toString());
  const missing = ['id', 'env', 'auth'].filter(
    (name) => typeof query[name] !== 'string' || query[name] === '',
  );
  if (missing.length > 0) return { id: null, problem: `it names no ${missing.join(', ')}, or more than one` };
  return { id: String(query.id), problem: null };
}
