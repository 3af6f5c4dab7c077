import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { signal } from '../signal.ts';

/** Stops a program in a pod of this test's cluster. The kernel still takes its connections. */
export async function stopInPod(pod: string, program: string): Promise<void> {
  let count = 0;
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const [environment, argv] = await Promise.all(['environ', 'cmdline'].map((file) => words(entry, file)));
    if (!environment?.includes(`HOSTNAME=${pod}`) || !argv?.includes(program)) continue;
    signal(Number(entry), 'SIGSTOP');
    count += 1;
  }
  if (count === 0) throw new Error(`no process of the pod ${pod} runs ${program}`);
}

/** A file of a process, by its zeros; empty if the process has ended. */
async function words(pid: string, file: string): Promise<string[]> {
  const text = await readFile(join('/proc', pid, file), 'utf8').catch(() => '');
  return text.split('\0');
}
