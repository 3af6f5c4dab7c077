import { z } from 'zod';
import { contentHash } from '../../../../base/ownership.ts';
import { TLS_MODES } from '../certificates.ts';

/** See `UsedCertificate`. */
const certificate = z.strictObject({
  host: z.string(),
  tls: z.enum(TLS_MODES),
  files: z.nullable(z.strictObject({ cert: z.string(), key: z.string(), fingerprint: z.string() })),
});
const headSchema = z.strictObject({
  /** See `Renderer.form`. */
  form: z.string(),
  certificates: z.array(certificate),
  /** Hash of the text after the head. */
  body: z.string(),
});
export type SiteFileHead = z.output<typeof headSchema>;

/** The first two lines of a file in `sites/`; nginx's configuration follows. */
interface NginxSiteFile {
  readonly mark: string | undefined;
  /** `null` if it isn't ours, or was edited since it was written. */
  readonly head: SiteFileHead | null;
}

export function formatSiteFile(mark: string, head: Omit<SiteFileHead, 'body'>, body: string): string {
  return `# ${mark}\n# ${JSON.stringify({ ...head, body: contentHash(body) })}\n${body}`;
}

export function readNginxSiteFile(text: string): NginxSiteFile {
  const [first = '', second = '', ...rest] = text.split('\n');
  const head = second.startsWith('# {') ? parseHead(second.slice(2)) : null;
  return {
    mark: first.startsWith('# ') ? first.slice(2) : undefined,
    head: head?.body === contentHash(rest.join('\n')) ? head : null,
  };
}

function parseHead(json: string): SiteFileHead | null {
  try {
    return headSchema.parse(JSON.parse(json));
  } catch {
    return null;
  }
}
