import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { batchOf, keyAt, ndjson, recordAt } from '../support/traffic/records.ts';

const PER_OBJECT = 5_000;
const PER_BATCH = 50;

interface Backlog {
  /** The bucket's own folder, in which objects are files. */
  readonly folder: string;
  readonly containers: readonly string[];
  readonly records: number;
  /** The time of the first object, milliseconds since 1970. The others are spread over `spanMs`. */
  readonly from: number;
  readonly spanMs: number;
}

/** Writes objects as the edge does, into the bucket's own folder. Resolves to the number of their octets. */
export async function writeBacklog({ folder, containers, records, from, spanMs }: Backlog): Promise<number> {
  let octets = 0;
  for (let first = 0; first < records; first += PER_OBJECT) {
    const time = from + (first / records) * spanMs;
    const batches = Array.from({ length: PER_OBJECT / PER_BATCH }, (_, batch) =>
      batchOf(
        Array.from({ length: PER_BATCH }, (_, index) => {
          const place = first + batch * PER_BATCH + index;
          return recordAt(new Date(time + (place % 60_000)).toISOString(), {
            container: containers[(place * 7_919) % containers.length],
            duration: (place * 31) % 300,
            route: ['/g/collect', '/boot', '/l/:token.js', '/c/:token.js'][place % 4],
            status: place % 50 === 0 ? 404 : 200,
            country: ['DE', 'FR', 'US', 'NL', 'AT'][place % 5],
          });
        }),
      ),
    ).flat();
    const text = ndjson(batches);
    octets += text.length;
    const path = join(folder, keyAt(String(batches[0]?.time)));
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
  return octets;
}
