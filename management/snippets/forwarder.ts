import { z } from 'zod';
import { hostname } from '../../sites/manifest/schema.ts';

/** A cookie name, or a prefix with `*` at its end. It needs no escaping in a string of any forwarder's language. */
const COOKIE = /^[A-Za-z0-9_.-]{1,127}\*?$/;

const edge = z
  .string()
  .regex(/^https?:\/\/[a-z0-9.-]+(?::\d{1,5})?$/, 'must be like https://acme-shop.example.net')
  .transform((text, context) => {
    const url = URL.parse(text);
    const name = hostname.safeParse(url?.hostname);
    if (url === null || !name.success) {
      context.issues.push({ code: 'custom', message: 'has no host name', input: text });
      return z.NEVER;
    }
    const isTls = url.protocol === 'https:';
    return {
      isTls,
      host: name.data,
      port: url.port === '' ? (isTls ? 443 : 80) : Number(url.port),
      /** With the port, unless it is the scheme's default. */
      authority: url.host,
      origin: url.origin,
    };
  });

/**
 * The values of a forwarder's snippet. One that would need escaping is refused: an accepted one can stand as it is in
 * a string of any forwarder's language.
 */
const forwarderSchema = z.strictObject({
  /** Base URL of the site's edge hostname. */
  edge,
  path: z.string().regex(/^\/[a-z0-9]{6,12}$/, 'must be / and 6 to 12 characters of a-z and 0-9'),
  /** The domain of the pages. */
  domain: hostname,
  token: z.string().regex(/^ft_[A-Za-z0-9_-]{16,128}$/, 'must be a forwarder’s token'),
  /** The cookies that are passed on: names, and prefixes of names with `*` at their end. */
  cookies: z
    .array(
      z.string().regex(COOKIE, 'must consist of letters, digits, _, - and ., with an optional * at the end'),
    )
    .min(1),
});
export type Forwarder = z.output<typeof forwarderSchema>;
export type ForwarderInput = z.input<typeof forwarderSchema>;

/** Throws a `ZodError` if a value is refused. */
export function parseForwarder(input: ForwarderInput): Forwarder {
  return forwarderSchema.parse(input);
}

/** Whether snippets can name the cookie. */
export function isQuotableCookie(pattern: string): boolean {
  return COOKIE.test(pattern);
}
