import { readdirSync, readFileSync } from 'node:fs';

/** The child of this process with the slot as HOST and PORT in its environment (Linux: `/proc`). */
export function childBySlot(slot: { address: string; port: number } | null): number {
  if (slot === null) throw new Error('no slot: the container does not run');
  const wanted = [`HOST=${slot.address}`, `PORT=${slot.port}`];
  for (const entry of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const parent = /^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${entry}/status`, 'utf8'))?.[1];
      if (Number(parent) !== process.pid) continue;
      const environment = readFileSync(`/proc/${entry}/environ`, 'utf8').split('\0');
      if (wanted.every((line) => environment.includes(line))) return Number(entry);
    } catch {
      // The process ended after the listing.
    }
  }
  throw new Error(`no child of this process serves ${slot.address}:${slot.port}`);
}
