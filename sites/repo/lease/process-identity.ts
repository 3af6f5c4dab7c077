import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { z } from 'zod';

/** Identifies a process across machines and restarts. A field is `null` if the system doesn't provide its value. */
export const processIdentity = z.object({
  hostname: z.string(),
  machine: z.string().nullable(),
  boot: z.string().nullable(),
  /** The PID namespace that `pid` belongs to. */
  namespace: z.string().nullable(),
  pid: z.number(),
  /** The user id. `null`: unknown, also in the record of an earlier release. */
  uid: z.number().nullable().default(null),
  /** When the process started, in clock ticks since the boot. */
  started: z.string().nullable(),
});
type ProcessIdentity = z.output<typeof processIdentity>;

/** This process. */
export function ownIdentity(): ProcessIdentity {
  return {
    hostname: hostname(),
    machine: textOf('/etc/machine-id'),
    boot: textOf('/proc/sys/kernel/random/boot_id'),
    namespace: namespace(),
    pid: process.pid,
    uid: process.getuid?.() ?? null,
    started: startOf(process.pid),
  };
}

/**
 * Whether the process ran since this boot in this PID namespace. False for a process of another machine or of another
 * boot: cloned machines and images have the same machine id, and most containers have none, but no two boots have the
 * same id.
 */
export function ranHere({ machine, boot, namespace: where }: ProcessIdentity): boolean {
  const own = ownIdentity();
  if (boot === null || where === null) return false;
  return machine === own.machine && boot === own.boot && where === own.namespace;
}

/** True only if the process ran here and has certainly ended. */
export function hasEnded(identity: ProcessIdentity): boolean {
  if (!ranHere(identity)) return false;
  const { pid, uid, started } = identity;
  const current = startOf(pid);
  // A process of this one's own user would not be hidden: another process has its id now.
  const isOther = uid !== (process.getuid?.() ?? null);
  return current !== started && !(current === null && isOther && isHidden(pid));
}

/** True if there is a process, but /proc hides it, because it belongs to another user. Source: proc(5), `hidepid`. */
function isHidden(pid: number): boolean {
  if (existsSync(`/proc/${pid}/stat`)) return false;
  try {
    return process.kill(pid, 0); // sends nothing
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}

function namespace(): string | null {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return null;
  }
}

/** `null`: there is no such process, /proc hides it, or it is a zombie. Source: proc(5), field 22 of `stat`. */
function startOf(pid: number): string | null {
  const [state, ...rest] =
    textOf(`/proc/${pid}/stat`)
      ?.replace(/^.*\) /s, '')
      .split(' ') ?? [];
  return state === undefined || state === 'Z' ? null : (rest[18] ?? null);
}

function textOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim() || null;
  } catch {
    return null;
  }
}
