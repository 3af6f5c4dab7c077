/** What a container configuration of Tag Manager says. Its `auth` is a secret, and is not kept. */
interface DecodedConfig {
  /** Such as `GTM-ABC1234`. */
  readonly id: string;
  readonly env: string;
  readonly hasAuth: boolean;
}

/** Decodes what a person pasted; `null`: the text is no container configuration. The API checks it again. */
export function decodeConfig(pasted: string): DecodedConfig | null {
  const text = pasted.replace(/\s+/g, '').replaceAll('-', '+').replaceAll('_', '/');
  if (text === '') return null;
  let query: URLSearchParams;
  try {
    query = new URLSearchParams(atob(text));
  } catch {
    return null;
  }
  const id = query.get('id') ?? '';
  const env = query.get('env') ?? '';
  if (!/^GTM-[A-Z0-9]{4,12}$/.test(id) || env === '') return null;
  return { id, env, hasAuth: (query.get('auth') ?? '') !== '' };
}
