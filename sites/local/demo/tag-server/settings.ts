import { parse as parseQuery } from 'node:querystring';
import { parseArgs } from 'node:util';

/** The content of CONTAINER_CONFIG. `auth` is a secret. */
export interface ContainerConfig {
  readonly id: string;
  readonly env: string;
  readonly auth: string;
}

export interface TagServerSettings {
  readonly config: ContainerConfig;
  readonly role: 'processing' | 'preview';
  /** The processing role forwards `/gtm/*` to this URL; `null`: it forwards nothing. */
  readonly previewServerUrl: string | null;
  readonly port: number;
  /** The address to listen on; empty: all addresses, IPv6 included. */
  readonly host: string;
  readonly longPollSeconds: number;
  /** Debug messages that were not fetched are dropped after this time. */
  readonly messageExpirySeconds: number;
  /** How often the processing role fetches its container again; 0: never. */
  readonly refreshSeconds: number;
  /** The script that limits what templates may do, over https; `null`: none. The preview role runs no templates. */
  readonly policyScriptUrl: string | null;
  /** The base URL in place of Google's; `null`: the stand-in answers for Google itself. */
  readonly upstream: string | null;
}

/** The environment variables of the real image that the stand-in reads. Each one is also a flag, in lower case. */
const NAMES = [
  'CONTAINER_CONFIG',
  'PREVIEW_SERVER_URL',
  'RUN_AS_PREVIEW_SERVER',
  'RUN_AS_DEBUG_SERVER',
  'PORT',
  'HOST',
  'GET_MEMO_LONG_POLL_TIMEOUT_SEC',
  'DEBUG_MESSAGE_EXPIRATION_SECONDS',
  'CONTAINER_REFRESH_SECONDS',
  'POLICY_SCRIPT_URL',
] as const;
type Name = (typeof NAMES)[number];

/** Reads flags (`--port=8080`) and environment; a flag wins. Throws for the settings that the real server refuses. */
export function readSettings(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): TagServerSettings {
  const { values } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(NAMES.map((name) => [name.toLowerCase(), { type: 'string' as const }])),
  });
  const read = (name: Name): string => {
    const flag = values[name.toLowerCase()];
    return typeof flag === 'string' ? flag : (env[name] ?? '');
  };
  const seconds = (name: Name, byDefault: string): number => integer(name, read(name) || byDefault);
  const isOn = (name: Name): boolean => read(name).toLowerCase() === 'true';
  const role = isOn('RUN_AS_PREVIEW_SERVER') || isOn('RUN_AS_DEBUG_SERVER') ? 'preview' : 'processing';
  const previewServerUrl = read('PREVIEW_SERVER_URL');
  // The preview role doesn't read the URL: it only logs a warning if one is set.
  if (role === 'processing' && previewServerUrl !== '' && !/^https:\/\/.+/i.test(previewServerUrl)) {
    throw new Error('Invalid preview server URL');
  }
  const policyScriptUrl = role === 'processing' ? read('POLICY_SCRIPT_URL') : '';
  if (policyScriptUrl !== '' && !/^https:\/\/.+/i.test(policyScriptUrl)) {
    throw new Error('Invalid policy script URL');
  }
  return {
    config: decodeContainerConfig(read('CONTAINER_CONFIG')),
    role,
    previewServerUrl: previewServerUrl || null,
    port: integer('PORT', read('PORT') || '8080', 65_535),
    host: read('HOST'),
    longPollSeconds: seconds('GET_MEMO_LONG_POLL_TIMEOUT_SEC', '20'),
    messageExpirySeconds: seconds('DEBUG_MESSAGE_EXPIRATION_SECONDS', '600'),
    refreshSeconds: seconds('CONTAINER_REFRESH_SECONDS', '60'),
    policyScriptUrl: policyScriptUrl || null,
    upstream: env.TAG_UPSTREAM || null,
  };
}

/**
 * Decodes base64 of a URL query. It must be canonical: encoding the decoded bytes again gives the same text. `id`, `env`
 * and `auth` must each occur once and be non-empty.
 */
function decodeContainerConfig(encoded: string): ContainerConfig {
  if (encoded === '') throw new Error('Missing container config: CONTAINER_CONFIG is not set');
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.length === 0 || bytes.toString('base64') !== encoded) {
    throw new Error('Failed to decode the container config');
  }
  const query = parseQuery(bytes.toString());
  const one = (name: keyof ContainerConfig): string => {
    const value = query[name];
    if (typeof value === 'string' && value !== '') return value;
    throw new Error(`Missing or invalid container config parameter: ${name}`);
  };
  return { id: one('id'), env: one('env'), auth: one('auth') };
}

function integer(name: Name, text: string, most = Number.MAX_SAFE_INTEGER): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value <= most) return value;
  throw new Error(`Invalid ${name}: must be a whole number from 0 to ${most}`);
}
