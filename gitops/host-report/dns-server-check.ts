import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Rfc2136Options, rfc2136Client } from '../clients/rfc2136.ts';
import { writeTsigKey } from '../clients/tsig-key.ts';
import { checkPart } from '../report/check-part.ts';
import type { PartCheck } from '../report/report.ts';

/** Seconds. */
const SILENCE = 2;

/** An update that changes nothing shows that the primary answers, and accepts the key and its clock. Never throws. */
export async function checkDnsServer(
  { server, zone }: Pick<Rfc2136Options, 'server' | 'zone'>,
  key: Parameters<typeof writeTsigKey>[1],
): Promise<PartCheck> {
  return await checkPart('dns_server', {
    fix: 'refused',
    subject: `DNS_SERVER ${server.host}:${server.port}`,
    async ask(signal) {
      const folder = await mkdtemp(join(tmpdir(), 'tagyard-tsig-'));
      try {
        const keyFile = join(folder, 'key');
        await writeTsigKey(keyFile, key);
        const client = rfc2136Client({ server, zone, keyFile, silenceSeconds: SILENCE });
        await client.update([`prereq yxdomain ${zone}.`], signal);
        return `${server.host}:${server.port} lets ${key.name} update ${zone}`;
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    },
  });
}
