import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import getPort from 'get-port';
import { RAW_LOG_BUCKET, startEdgeHost } from '../../../edge/host.ts';
import { openRawObjects } from '../../../management/raw-objects/open.ts';
import type { RawObjects } from '../../../management/raw-objects/raw-objects.ts';
import { HOME_LIMITS } from '../../../sites/local/cloudflare/api/limits.ts';
import { accountId, openState } from '../../../sites/local/cloudflare/api/state.ts';
import { API_PREFIX, buildEmulator } from '../../../sites/local/cloudflare/emulator.ts';
import { VERSITYGW } from '../components.ts';
import { eventually } from '../eventually.ts';

/** A bucket for raw logs, with the settings by which management finds it. */
export interface TestBucket {
  readonly objects: RawObjects;
  readonly settings: Readonly<Record<string, string>>;
  /** Where the server keeps its objects as files, by their keys. */
  readonly folder?: string;
  close(): Promise<void>;
}

const TOKEN = 'bucket-token';

function opened(settings: Readonly<Record<string, string>>): RawObjects {
  const objects = openRawObjects({ RAW_LOGS_BUCKET: RAW_LOG_BUCKET, RAW_LOGS_API_RATE: 1e6, ...settings });
  if (objects === null) throw new Error('the settings name no bucket');
  return objects;
}

/** Miniflare's R2, behind the emulator of Cloudflare's API, as on one machine. */
export async function cloudflareBucket(): Promise<TestBucket> {
  const dir = await mkdtemp(join(tmpdir(), 'tagyard-bucket-'));
  const edge = await startEdgeHost({ port: 0, persistDir: dir, vars: { HOP_SECRET: 'the-hop-secret' } });
  const db = openState(':memory:');
  accountId(db);
  const emulator = buildEmulator({
    db,
    token: TOKEN,
    scripts: [],
    kv: () => {
      throw new Error('no namespace here');
    },
    buckets: { [RAW_LOG_BUCKET]: edge.rawLogs },
    onRoutes: async () => undefined,
    limits: HOME_LIMITS,
  });
  const settings = {
    RAW_LOGS_API_URL: `${await emulator.listen({ host: '127.0.0.1', port: 0 })}${API_PREFIX}`,
    RAW_LOGS_API_TOKEN: TOKEN,
    RAW_LOGS_API_RATE: '1000000',
  };
  return {
    objects: opened({ ...settings }),
    settings,
    async close() {
      await emulator.close();
      db.close();
      await edge.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** A third-party S3 server (versitygw) on a folder. */
export async function s3Bucket(): Promise<TestBucket> {
  const dir = await mkdtemp(join(tmpdir(), 'tagyard-s3-'));
  await mkdir(join(dir, RAW_LOG_BUCKET));
  const port = await getPort({ host: '127.0.0.1' });
  const [access, secret] = ['tests', 'secret-of-the-tests'];
  const server = spawn(
    VERSITYGW,
    [
      '--access',
      access,
      '--secret',
      secret,
      '--port',
      `127.0.0.1:${port}`,
      '--quiet',
      'posix',
      '--nometa',
      dir,
    ],
    { stdio: 'ignore' },
  );
  const settings = {
    RAW_LOGS_S3_URL: `http://127.0.0.1:${port}`,
    RAW_LOGS_S3_ACCESS_KEY: access,
    RAW_LOGS_S3_SECRET_KEY: secret,
  };
  const objects = opened(settings);
  await eventually(() => objects.read('raw/none'));
  return {
    folder: join(dir, RAW_LOG_BUCKET),
    objects,
    settings,
    async close() {
      const exited = once(server, 'exit');
      server.kill('SIGTERM');
      await exited;
      await rm(dir, { recursive: true, force: true });
    },
  };
}
