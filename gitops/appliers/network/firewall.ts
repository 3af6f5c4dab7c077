import { existsSync } from 'node:fs';
import { type Clock, systemClock } from '../../../base/clock.ts';
import { RetryableError } from '../../../base/errors.ts';
import { CommandError, runCommand } from '../../clients/command.ts';
import type { Range } from './ranges.ts';
import {
  type Chains,
  chainsV4,
  chainsV6,
  type Exceptions,
  type FirewallNames,
  isIntact,
  parseChains,
  removeInput,
  restoreInput,
} from './rules.ts';

/** `denied`: this process has no right to read or change the firewall, or the host has no iptables. */
export type FirewallState =
  | { readonly kind: 'intact' | 'broken' }
  | { readonly kind: 'denied'; readonly reason: string };

interface FirewallOptions {
  readonly names: FirewallNames;
  /** The ranges of the sites' subnets. */
  readonly own: readonly Range[];
  /** Read at every call, because nameservers change. */
  readonly exceptions: () => Promise<Exceptions>;
  readonly clock?: Clock;
}

/** Every call throws `RetryableError` for a failure other than `denied`, such as a lock that another program holds. */
export interface Firewall {
  /** Compares the present rules with the desired ones. */
  check(): Promise<FirewallState>;
  /** Writes what is missing or was changed. */
  ensure(): Promise<FirewallState>;
  /** Removes the daemon's chains and the jumps to them. */
  remove(): Promise<FirewallState>;
}

interface Family {
  readonly command: 'iptables' | 'ip6tables';
  readonly desired: (exceptions: Exceptions) => Chains;
}

/** The file exists only where the kernel has IPv6. */
const IPV6 = '/proc/net/if_inet6';
/** Characters of output: a host may have thousands of rules. */
const MAX_OUTPUT = 32_000_000;
/** Seconds to wait for another program that changes the firewall. */
const LOCK_SECONDS = '10';
/** Milliseconds after which a refused change is tried again. */
const DENIAL_MS = 5 * 60_000;
/** Daemons and their tools are in sbin, which a user's PATH may lack. */
const PATH = `${process.env.PATH ?? ''}:/usr/sbin:/sbin`;

/**
 * Firewall rules, written by iptables. Containers reach only the internet, their preview server and the `exceptions`.
 */
export function firewall({ names, own, exceptions, clock = systemClock }: FirewallOptions): Firewall {
  const families: readonly Family[] = [
    { command: 'iptables', desired: (current) => chainsV4(names, current, own) },
    ...(existsSync(IPV6) ? [{ command: 'ip6tables', desired: () => chainsV6(names) } as const] : []),
  ];
  /**
   * By command: the chains that were written last (`wanted`), and the same chains as this version of iptables prints
   * them (`printed`). Its wording may differ from that of `wanted`.
   */
  const written = new Map<Family['command'], { readonly wanted: string; readonly printed: Chains }>();

  async function observe({ command, desired }: Family) {
    const present = await list(command);
    const wanted = desired(await exceptions());
    const last = written.get(command);
    const intact =
      isIntact(names, wanted, present) ||
      (last?.wanted === text(wanted) && isIntact(names, last.printed, present));
    return { wanted, present, intact };
  }

  async function ensureFamily(family: Family): Promise<void> {
    const { command } = family;
    const { wanted, present, intact } = await observe(family);
    if (intact) return;
    await run(`${command}-restore`, ['--noflush', '-w', LOCK_SECONDS], restoreInput(names, wanted, present));
    const after = await list(command);
    const own = [...wanted.keys()].map((chain): [string, readonly string[]] => [
      chain,
      after.get(chain) ?? [],
    ]);
    written.set(command, { wanted: text(wanted), printed: new Map(own) });
  }

  let denied: { readonly reason: string; readonly until: number } | null = null;
  async function change(work: () => Promise<void>): Promise<FirewallState> {
    denied = null;
    try {
      await work();
      return { kind: 'intact' };
    } catch (error) {
      const reason = denialOf(error);
      denied = { reason, until: clock.now() + DENIAL_MS };
      return { kind: 'denied', reason };
    }
  }

  return {
    async check() {
      try {
        const observed = await Promise.all(families.map(observe));
        if (observed.every(({ intact }) => intact)) return { kind: 'intact' };
      } catch (error) {
        return { kind: 'denied', reason: denialOf(error) };
      }
      if (denied === null || clock.now() >= denied.until) return { kind: 'broken' };
      return { kind: 'denied', reason: denied.reason };
    },

    ensure: () =>
      change(async () => {
        for (const family of families) await ensureFamily(family);
      }),

    remove: () =>
      change(async () => {
        for (const { command } of families) {
          const input = removeInput(names, await list(command));
          if (input !== null) await run(`${command}-restore`, ['--noflush', '-w', LOCK_SECONDS], input);
        }
      }),
  };
}

/** Whether this process may change the firewall. Reading the rules needs the same right. */
export async function mayWriteFirewall(): Promise<boolean> {
  return await list('iptables').then(
    () => true,
    () => false,
  );
}

async function list(command: Family['command']): Promise<Chains> {
  return parseChains(await run(command, ['-w', LOCK_SECONDS, '-S']));
}

async function run(command: string, args: readonly string[], input = ''): Promise<string> {
  const { stdout } = await runCommand(command, args, { input, env: { PATH }, maxOutput: MAX_OUTPUT });
  return stdout;
}

/** Why the host doesn't let this process read or change the firewall. Throws an error that may pass by itself. */
function denialOf(error: unknown): string {
  if (!(error instanceof CommandError)) throw error;
  if (/permission denied|must be root|not permitted/i.test(error.stderr)) {
    return 'the provisioner has neither root’s rights nor CAP_NET_ADMIN';
  }
  const { cause } = error;
  if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT')
    return 'this host has no iptables';
  throw new RetryableError(`the firewall: ${error.message}`, { cause: error });
}

function text(chains: Chains): string {
  return [...chains].map(([chain, rules]) => `${chain}\n${rules.join('\n')}`).join('\n');
}
