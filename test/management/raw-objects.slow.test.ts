import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { s3Objects } from '../../management/raw-objects/s3.ts';
import { describeWith } from '../support/components.ts';
import { cloudflareBucket, s3Bucket, type TestBucket } from '../support/traffic/buckets.ts';

/** Every bucket that management can read behaves like this. */
function conformance(open: () => Promise<TestBucket>, count: number): void {
  let bucket: TestBucket;
  beforeAll(async () => {
    bucket = await open();
  });
  afterAll(() => bucket.close());

  const keys = async (prefix: string, after?: string) => {
    const all: string[] = [];
    for await (const { key } of bucket.objects.list(prefix, after)) all.push(key);
    return all;
  };

  test('writes an object as a whole, reads it, and removes it; a missing one is no error', async () => {
    const { objects } = bucket;
    const key = 'raw/dt=2026-01-01/2026-01-01T000000.000Z-a&b ü.ndjson';
    await objects.write(key, Buffer.from('{"a":"long"}\n'));
    await objects.write(key, Buffer.from('{"ü":1}\n'));
    expect(String(await objects.read(key))).toBe('{"ü":1}\n');
    const listed = [];
    for await (const object of objects.list('raw/dt=2026-01-01/')) listed.push(object);
    expect(listed).toEqual([{ key, size: Buffer.byteLength('{"ü":1}\n') }]);
    await objects.remove(key);
    await objects.remove(key);
    expect(await objects.read(key)).toBeNull();
    expect(await keys('raw/dt=2026-01-01/')).toEqual([]);
  });

  test('lists in the order of the keys, over pages, and after a key', async () => {
    const names = Array.from({ length: count }, (_, index) => `raw/dt=2026-01-02/${index + 1_000}`);
    await Promise.all(names.toReversed().map((name) => bucket.objects.write(name, Buffer.from('x'))));
    await bucket.objects.write('raw/dt=2026-01-03/other', Buffer.from('x'));
    expect(await keys('raw/dt=2026-01-02/')).toEqual(names);
    expect(await keys('raw/dt=2026-01-02/', names[count - 3])).toEqual(names.slice(-2));
  });
}

describe('Miniflare’s R2 behind Cloudflare’s API', () => conformance(cloudflareBucket, 20));

describeWith('versitygw', 'a server of S3', () => {
  // More than one page.
  conformance(s3Bucket, 1_003);

  test('says why it can’t read', async () => {
    const bucket = await s3Bucket();
    try {
      const url = bucket.settings.RAW_LOGS_S3_URL ?? '';
      const objects = s3Objects({ url, accessKey: 'tests', secretKey: 'wrong', bucket: 'tagyard-raw-logs' });
      await expect(objects.read('raw/a')).rejects.toThrow(
        'the bucket tagyard-raw-logs refuses GET: status 403',
      );
    } finally {
      await bucket.close();
    }
  });
});
