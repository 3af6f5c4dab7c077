import { hash16, type Identity } from '../../../base/ownership.ts';
import { formatRange, type Range } from './ranges.ts';

/** A daemon's names in the firewall. They don't depend on its sites: one rule covers the bridges of all sites. */
export interface FirewallNames {
  /** Start of the names of the daemon's bridges. A bridge's name has at most 15 characters. */
  readonly bridgePrefix: string;
  /** The chain of packets that containers send through the host. */
  readonly forward: string;
  /** The chain of packets that containers send to the host. */
  readonly input: string;
}

/** Derives the names from instance and host, so that daemons on one machine have different ones. */
export function firewallNames({ instance, host }: Identity): FirewallNames {
  const id = hash16(`${instance} ${host}`).slice(0, 5);
  return { bridgePrefix: `tgy${id}`, forward: `TAGYARD-${id}-FWD`, input: `TAGYARD-${id}-IN` };
}

/** The name of a subnet's bridge; no other subnet has the same. */
export function bridgeName({ bridgePrefix }: FirewallNames, { start, bits }: Range): string {
  return `${bridgePrefix}${(start / 2 ** (32 - bits)).toString(16).padStart(7, '0')}`;
}

/** Destinations that aren't public and that containers may reach. */
export interface Exceptions {
  /** Where the proxy answers for preview hostnames. */
  readonly preview: { readonly address: string; readonly port: number } | null;
  /** IPv4 addresses that containers may reach for DNS only. */
  readonly nameservers: readonly string[];
  readonly ranges: readonly Range[];
}

/**
 * Ranges that aren't public (IANA's special-purpose registry), and Azure's metadata service, which has a public
 * address.
 */
const NOT_PUBLIC = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '168.63.129.16/32',
];

const REFUSE = '-j REJECT --reject-with icmp-admin-prohibited';
const REFUSE_V6 = '-j REJECT --reject-with icmp6-adm-prohibited';
/**
 * Lets replies to the host's own connections through. Every packet of a connection that a container opened is checked.
 */
const KNOWN = '-m conntrack --ctstate RELATED,ESTABLISHED --ctdir REPLY -j RETURN';

/** By chain, its rules as `iptables -S` prints them. `RETURN`: the host's other rules decide. */
export type Chains = ReadonlyMap<string, readonly string[]>;

/** The chains for IPv4. `own`: the ranges of the sites' subnets. */
export function chainsV4(names: FirewallNames, exceptions: Exceptions, own: readonly Range[]): Chains {
  const dns = exceptions.nameservers.flatMap((address) => [
    `-d ${address}/32 -p udp -m udp --dport 53 -j RETURN`,
    `-d ${address}/32 -p tcp -m tcp --dport 53 -j RETURN`,
  ]);
  const ranges = exceptions.ranges.map((range) => `-d ${formatRange(range)} -j RETURN`);
  const { preview } = exceptions;
  const toPreview =
    preview === null ? [] : [`-d ${preview.address}/32 -p tcp -m tcp --dport ${preview.port} -j ACCEPT`];
  const refused = [...new Set([...NOT_PUBLIC, ...own.map(formatRange)])];
  return new Map([
    [names.forward, [KNOWN, ...dns, ...ranges, ...refused.map((range) => `-d ${range} ${REFUSE}`)]],
    [names.input, [KNOWN, ...toPreview, ...dns, ...ranges, REFUSE]],
  ]);
}

/** The chains for IPv6. They refuse every packet, because the networks have no IPv6. */
export function chainsV6(names: FirewallNames): Chains {
  return new Map([
    [names.forward, [REFUSE_V6]],
    [names.input, [REFUSE_V6]],
  ]);
}

/** Docker's chain for the host's own rules. The engine puts it first in FORWARD when it starts. */
const DOCKER_USER = 'DOCKER-USER';

/** A jump of any Tagyard daemon: it concerns that daemon's bridges only. */
const ANY_JUMP = /^-i tgy[0-9a-f]{5}\+ -j TAGYARD-[0-9a-f]{5}-(?:FWD|IN)$/;

interface Jump {
  readonly from: string;
  readonly rule: string;
}

function jumps(names: FirewallNames, present: Chains): Jump[] {
  const rule = (chain: string) => `-i ${names.bridgePrefix}+ -j ${chain}`;
  return [
    { from: 'INPUT', rule: rule(names.input) },
    { from: 'FORWARD', rule: rule(names.forward) },
    // The chain is missing if the engine doesn't change the firewall.
    ...(present.has(DOCKER_USER) ? [{ from: DOCKER_USER, rule: rule(names.forward) }] : []),
  ];
}

/** True if no rule can accept a packet of our bridges before the jump. */
function isFirst({ from, rule }: Jump, present: Chains): boolean {
  for (const one of present.get(from) ?? []) {
    if (one === rule) return true;
    if (from === 'FORWARD' && one === `-j ${DOCKER_USER}`)
      return isFirst({ from: DOCKER_USER, rule }, present);
    if (!ANY_JUMP.test(one)) return false;
  }
  return false;
}

/** True if the chains and the jumps to them are as desired. */
export function isIntact(names: FirewallNames, desired: Chains, present: Chains): boolean {
  const isEqual = ([chain, rules]: [string, readonly string[]]) =>
    present.get(chain)?.join('\n') === rules.join('\n');
  return [...desired].every(isEqual) && jumps(names, present).every((jump) => isFirst(jump, present));
}

/**
 * Input for `iptables-restore --noflush`: one transaction that replaces the present chains and jumps by the desired
 * ones.
 */
export function restoreInput(names: FirewallNames, desired: Chains, present: Chains): string {
  return transaction([
    ...[...desired.keys()].map((chain) => `:${chain} - [0:0]`),
    ...jumps(names, present).flatMap((jump) => [
      ...occurrences(jump, present).map(() => `-D ${jump.from} ${jump.rule}`),
      `-I ${jump.from} 1 ${jump.rule}`,
    ]),
    ...[...desired].flatMap(([chain, rules]) => rules.map((rule) => `-A ${chain} ${rule}`)),
  ]);
}

/** Input for `iptables-restore --noflush` that removes the chains and their jumps; `null` if there are no chains. */
export function removeInput(names: FirewallNames, present: Chains): string | null {
  const chains = [names.forward, names.input].filter((chain) => present.has(chain));
  if (chains.length === 0) return null;
  return transaction([
    ...jumps(names, present).flatMap((jump) =>
      occurrences(jump, present).map(() => `-D ${jump.from} ${jump.rule}`),
    ),
    ...chains.flatMap((chain) => [`-F ${chain}`, `-X ${chain}`]),
  ]);
}

function occurrences({ from, rule }: Jump, present: Chains): readonly string[] {
  return (present.get(from) ?? []).filter((one) => one === rule);
}

function transaction(lines: readonly string[]): string {
  return `${['*filter', ...lines, 'COMMIT'].join('\n')}\n`;
}

/** Reads the output of `iptables -S`. */
export function parseChains(text: string): Chains {
  const chains = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const [, kind, chain = '', rule = ''] = /^-([NPA]) (\S+) ?(.*)$/.exec(line) ?? [];
    if (kind === undefined) continue;
    const rules = chains.get(chain) ?? [];
    chains.set(chain, rules);
    if (kind === 'A') rules.push(rule);
  }
  return chains;
}
