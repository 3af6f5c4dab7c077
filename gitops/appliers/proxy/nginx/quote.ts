import { z } from 'zod';
import { TerminalError } from '../../../../base/errors.ts';
import { cidrRange } from '../policy.ts';

const port = z.int().min(1).max(65535);
const address = z.union([
  z.ipv4(),
  z.string().regex(/^\[[0-9a-f:.]+\]$/i, 'must be an address, IPv6 in brackets'),
]);

/** An absolute path that is one word in nginx's quotes. */
const path = z.string().regex(/^\/[\w@%+=:,./~ -]*$/, 'must be an absolute path without quotes or variables');

export const databasePath = path.nullable();

/** A host name, or all names under one (`*.domain`). */
export const nginxName = z
  .string()
  .max(255)
  .regex(/^(?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)*$/, 'must be a host name or *.domain');

/** The names of one server for many sites. */
export const platformNames = z.array(nginxName).min(1);

export const certificatePaths = z.object({ cert: path, key: path }).nullable();

/** `<number>-<hash>`. */
export const versionText = z.string().regex(/^[0-9]+-[0-9a-f]+$/);

/** A secret without characters that have a meaning in headers, patterns or quotes. */
const secret = z.string().regex(/^[A-Za-z0-9_-]{16,256}$/, 'must be 16 to 256 of A-Z, a-z, 0-9, - and _');

export const trustedPeers = z.object({ cloudflare: z.array(cidrRange), own: z.array(cidrRange) });

/**
 * How many requests of one name nginx has at once, the edge's included. A request takes two connections at each name that it
 * passes, so a custom domain and the origin of a site whose tag server hangs have half of the 8,192 of one worker.
 */
const NAME_SHARE = 1_024;

/** Settings of the main configuration. */
export const mainSchema = z.object({
  listen: z.array(address).min(1),
  httpPort: port,
  tlsPort: port,
  statusPort: port,
  hopSecret: secret,
  /** Thumbprint of the ACME account's key (RFC 7638); `null`: no challenge is answered. */
  challengeKey: z
    .string()
    .regex(/^[A-Za-z0-9_-]{43}$/)
    .nullable()
    .default(null),
  edge: z.object({ scheme: z.enum(['http', 'https']), address, port }),
  // nginx has no default CAs; this is the path of the bundle on Debian and Alpine.
  ca: path.default('/etc/ssl/certs/ca-certificates.crt'),
  /** nginx's GeoIP2 module; `null`: not loaded. */
  geoModule: path.nullable().default(null),
  shutdownSeconds: z.int().min(1).default(30),
  limits: z
    .object({
      requestsPerSecond: z.int().min(1).max(1_000_000),
      connections: z.int().min(1).max(65_535),
      all: z.int().min(1).max(65_535).default(NAME_SHARE),
    })
    // Above what one tag server can answer, but a small part of nginx's 8,192 connections per worker.
    .prefault({ requestsPerSecond: 500, connections: 500 })
    // A burst may have the requests of two seconds, because pages send their hits in bursts.
    .transform(({ all, ...limits }) => ({
      ...limits,
      burst: 2 * limits.requestsPerSecond,
      all: Math.max(all, limits.connections),
    })),
  /** The folder of logs if the system's nginx is used, because its prefix isn't ours; `null`: our own nginx is used. */
  systemLogs: path.nullable().default(null),
  workerProcesses: z.union([z.int().min(1), z.literal('auto')]).default('auto'),
  /** The secret before the present one, which the edge may still send; `null`: none. */
  previousHopSecret: secret.nullable().default(null),
  /**
   * How nginx is told to speak HTTP/2: by a parameter of `listen` before 1.25.1, later by a directive. `none`: it was
   * built without HTTP/2.
   */
  http2: z.enum(['parameter', 'directive', 'none']),
  /** What only the gateway of a cluster has; `null`: a host's proxy. */
  gateway: z
    .object({
      /** The folder with a symbolic link for each name that leads to pods. */
      names: path,
      /** Where the resolver of pods answers, on 127.0.0.1. */
      resolverPort: port,
      /** The port where policy scripts are served to pods: no front is before it. */
      policyPort: port,
      /** The last labels of the names that the resolver of pods answers. */
      zone: z.string().regex(/^[a-z][a-z.]*$/),
      /**
       * The peers that state addresses by the PROXY protocol; `null`: none. If there are any, every connection must
       * begin with it.
       */
      frontRanges: z
        .array(z.union([z.cidrv4(), z.cidrv6()]))
        .min(1)
        .nullable(),
    })
    .nullable()
    .default(null),
});
export type MainSettings = z.output<typeof mainSchema>;

/**
 * Refuses values, never escapes them: a value that passes these schemas contains no quote, `$`, `;`, brace or line
 * break, so it is always one word of nginx's language. Throws `TerminalError`, whose message doesn't contain the value.
 */
export function plain<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const faults = result.error.issues.map(({ path: where, message }) =>
    `${where.join('.')} ${message}`.trim(),
  );
  throw new TerminalError(`${what} can't be written into nginx's configuration: ${faults.join('; ')}`, {
    isOfSite: true,
  });
}

/**
 * The most bytes that are written as one word of nginx's language. nginx reads at most 4,096, quotes included
 * (NGX_CONF_BUFFER in nginx's source, src/core/ngx_conf_file.c).
 */
const MOST_BYTES = 3_900;

/** A variable of the main configuration whose value is a dollar sign, which has no escape. */
const DOLLAR = `\${tagyard_dollar}`;

interface ScriptParts {
  /** The parts of the script as words in quotes, each for a variable. */
  readonly parts: readonly { readonly name: string; readonly text: string }[];
  /** The word that joins the variables. */
  readonly body: string;
}

/** A script as nginx's words. The characters that have a meaning in quotes are escaped, so no script ends its word. */
export function scriptParts(script: string): ScriptParts {
  const texts = [''];
  let bytes = 0;
  for (const character of script) {
    const word = escaped(character);
    const size = Buffer.byteLength(word);
    if (bytes + size > MOST_BYTES) {
      texts.push('');
      bytes = 0;
    }
    texts[texts.length - 1] += word;
    bytes += size;
  }
  const parts = texts.map((text, index) => ({ name: `tagyard_script_${index}`, text }));
  return { parts, body: parts.map(({ name }) => `\${${name}}`).join('') };
}

function escaped(character: string): string {
  if (character === '"' || character === '\\') return `\\${character}`;
  return character === '$' ? DOLLAR : character;
}
