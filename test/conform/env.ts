import { z } from 'zod';

const text = z
  .string()
  .optional()
  .transform((value) => value || null);

const schema = z.object({
  /** The token and the zone that the behaviours of `--cloudflare` use. */
  CLOUDFLARE_API_TOKEN: text,
  CLOUDFLARE_ZONE_ID: text,
  /** A CONTAINER_CONFIG that Google knows, for `--image`. */
  CONFORM_CONTAINER_CONFIG: text,
  /** A published web container, for `--google`. */
  CONFORM_WEB_TAG_ID: text,
});
export type ConformEnv = z.output<typeof schema>;

export const readEnv = (env: NodeJS.ProcessEnv): ConformEnv => schema.parse(env);

/** What must not be printed: the token, and the container configuration in each of its forms. */
export function secretsOf({ CLOUDFLARE_API_TOKEN, CONFORM_CONTAINER_CONFIG }: ConformEnv): string[] {
  const decoded = Buffer.from(CONFORM_CONTAINER_CONFIG ?? '', 'base64').toString();
  const asSent = /(?:^|&)auth=([^&]*)/.exec(decoded)?.[1];
  const auth = new URLSearchParams(decoded).get('auth');
  return [CLOUDFLARE_API_TOKEN, CONFORM_CONTAINER_CONFIG, decoded, asSent, auth].filter(
    (secret) => typeof secret === 'string' && secret !== '',
  ) as string[]; // the filter removes null and undefined
}
