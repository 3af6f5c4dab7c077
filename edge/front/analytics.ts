import workers from 'cloudflare-internal:workers';
import type { HostPoint } from './host-point.ts';

interface AnalyticsEnv {
  readonly DATASET: string;
  readonly HOST: Fetcher;
}

const MOST_FIELDS = 20;
const MOST_INDEX_OCTETS = 96;
const MOST_BLOB_OCTETS = 16 * 1024;
/** How long points wait, so that several are sent in one call. */
const LINGER_MS = 100;

const encoder = new TextEncoder();
const textOf = (blob: unknown): string =>
  blob instanceof ArrayBuffer ? new TextDecoder().decode(blob) : String(blob ?? '');
const octetsOf = (texts: readonly string[]) =>
  texts.reduce((sum, text) => sum + encoder.encode(text).length, 0);

/**
 * A binding of Analytics Engine with Cloudflare's limits. It sends the points to the host's process; Miniflare's own binding
 * drops all points and checks no limits.
 */
export default function analytics(env: AnalyticsEnv): AnalyticsEngineDataset {
  let points: HostPoint[] = [];
  /** The end of a request can cancel the timer that it set. After this time, the next point sets a new one. */
  let timerUntil = 0;

  async function send(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, LINGER_MS));
    const sent = points;
    points = [];
    timerUntil = 0;
    if (sent.length > 0) await env.HOST.fetch('http://host/', { method: 'POST', body: JSON.stringify(sent) });
  }

  return {
    writeDataPoint({ indexes = [], blobs = [], doubles = [] } = {}) {
      const texts = blobs.map(textOf);
      const [index = '', ...others] = indexes.map(textOf);
      demand(others.length === 0, 'Maximum of 1 indexes supported');
      demand(octetsOf([index]) <= MOST_INDEX_OCTETS, `Size of the index exceeds ${MOST_INDEX_OCTETS} bytes`);
      demand(texts.length <= MOST_FIELDS, `Maximum of ${MOST_FIELDS} blobs supported`);
      demand(
        octetsOf(texts) <= MOST_BLOB_OCTETS,
        `Cumulative size of blobs exceeds ${MOST_BLOB_OCTETS} bytes`,
      );
      demand(doubles.length <= MOST_FIELDS, `Maximum of ${MOST_FIELDS} doubles supported`);
      const time = Date.now();
      points.push({ dataset: env.DATASET, time, index, blobs: texts, doubles: doubles.map(Number) });
      if (time < timerUntil) return;
      timerUntil = time + 2 * LINGER_MS;
      workers.waitUntil(send());
    },
  };
}

function demand(holds: boolean, reason: string): void {
  if (!holds) throw new TypeError(`writeDataPoint(): ${reason}.`);
}
