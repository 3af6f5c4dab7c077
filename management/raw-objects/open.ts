import { cloudflareObjects } from './cloudflare.ts';
import type { RawObjects } from './raw-objects.ts';
import { s3Objects } from './s3.ts';

interface RawLogsSettings {
  readonly RAW_LOGS_BUCKET: string;
  readonly RAW_LOGS_S3_URL?: string | undefined;
  readonly RAW_LOGS_S3_ACCESS_KEY?: string | undefined;
  readonly RAW_LOGS_S3_SECRET_KEY?: string | undefined;
  readonly RAW_LOGS_API_URL?: string | undefined;
  readonly RAW_LOGS_API_TOKEN?: string | undefined;
  readonly RAW_LOGS_ACCOUNT_ID?: string | undefined;
  /** Calls per second of Cloudflare's API. */
  readonly RAW_LOGS_API_RATE: number;
}

/** The bucket, by the interface whose URL is set; S3 has precedence. `null`: no URL is set. */
export function openRawObjects(settings: RawLogsSettings): RawObjects | null {
  const { RAW_LOGS_BUCKET: bucket, RAW_LOGS_S3_URL: s3, RAW_LOGS_API_URL: api } = settings;
  if (s3 !== undefined) {
    return s3Objects({
      url: s3,
      bucket,
      accessKey: settings.RAW_LOGS_S3_ACCESS_KEY ?? '',
      secretKey: settings.RAW_LOGS_S3_SECRET_KEY ?? '',
    });
  }
  if (api === undefined) return null;
  const rate = settings.RAW_LOGS_API_RATE;
  return cloudflareObjects({
    url: api,
    bucket,
    token: settings.RAW_LOGS_API_TOKEN ?? '',
    accountId: settings.RAW_LOGS_ACCOUNT_ID,
    rate,
    burst: Math.max(100, rate),
  });
}
