import { AwsClient } from 'aws4fetch';
import type { RawObject, RawObjects } from './raw-objects.ts';

interface S3Options {
  /** The endpoint without the bucket, such as `https://<account>.r2.cloudflarestorage.com`. */
  readonly url: string;
  readonly accessKey: string;
  readonly secretKey: string;
  readonly bucket: string;
  /** The most milliseconds that one call may take. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 30_000;
/** Repeats of a call that was answered by 5xx or 429, and the longest pause before the first. */
const RETRIES = 2;
const FIRST_PAUSE_MS = 100;
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** A bucket behind the S3 interface: R2's, or of another server. */
export function s3Objects({
  url,
  accessKey,
  secretKey,
  bucket,
  timeoutMs = TIMEOUT_MS,
}: S3Options): RawObjects {
  const client = new AwsClient({
    accessKeyId: accessKey,
    secretAccessKey: secretKey,
    service: 's3',
    retries: RETRIES,
    initRetryMs: FIRST_PAUSE_MS,
  });
  const base = `${url.replace(/\/+$/, '')}/${encodeURIComponent(bucket)}`;
  const addressOf = (key: string) => `${base}/${key.split('/').map(encodeURIComponent).join('/')}`;

  async function call(address: string, init: RequestInit = {}, missing = false): Promise<Response> {
    let response: Response;
    try {
      response = await client.fetch(address, {
        ...init,
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs),
      });
    } catch (cause) {
      throw new Error(`the bucket ${bucket} doesn’t answer`, { cause });
    }
    if (response.ok || (missing && response.status === 404)) return response;
    throw new Error(`the bucket ${bucket} refuses ${init.method ?? 'GET'}: status ${response.status}`);
  }

  return {
    async *list(prefix, after) {
      let token: string | undefined;
      do {
        const query = new URLSearchParams({
          'list-type': '2',
          prefix,
          ...(after === undefined ? {} : { 'start-after': after }),
          ...(token === undefined ? {} : { 'continuation-token': token }),
        });
        const page = await (await call(`${base}?${query}`)).text();
        yield* objectsOf(page);
        token = /<IsTruncated>true</.test(page) ? textOf(page, 'NextContinuationToken') : undefined;
      } while (token !== undefined);
    },
    async read(key) {
      const response = await call(addressOf(key), {}, true);
      const body = Buffer.from(await response.arrayBuffer());
      return response.ok ? body : null;
    },
    async write(key, body) {
      // A copy with its own memory: the type of fetch's bodies excludes shared memory.
      await call(addressOf(key), { method: 'PUT', body: new Uint8Array(body) });
    },
    async remove(key) {
      await call(addressOf(key), { method: 'DELETE' }, true);
    },
  };
}

function* objectsOf(page: string): Generator<RawObject> {
  for (const [, entry = ''] of page.matchAll(/<Contents>(.*?)<\/Contents>/gs)) {
    yield { key: textOf(entry, 'Key') ?? '', size: Number(textOf(entry, 'Size')) };
  }
}

function textOf(xml: string, element: string): string | undefined {
  const text = new RegExp(`<${element}>([^<]*)</${element}>`).exec(xml)?.[1];
  return text?.replace(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (all, decimal, hexadecimal, name) => {
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    if (hexadecimal !== undefined) return String.fromCodePoint(Number.parseInt(hexadecimal, 16));
    return ENTITIES[name] ?? all;
  });
}
