import { describe, expect, test } from 'vitest';
import {
  bridgeName,
  type Chains,
  chainsV4,
  firewallNames,
  isIntact,
  parseChains,
  removeInput,
  restoreInput,
} from '../../../../gitops/appliers/network/rules.ts';

const names = firewallNames({ instance: 'production', host: 'tag-1' });
const other = firewallNames({ instance: 'production', host: 'tag-2' });
const own = [{ start: 0x0ad50000, bits: 16 }];
const desired = chainsV4(
  names,
  { preview: { address: '172.17.0.1', port: 443 }, nameservers: ['10.0.0.2'], ranges: [] },
  own,
);
const jump = `-i ${names.bridgePrefix}+ -j`;
const written = (extra: Record<string, readonly string[]> = {}): Chains =>
  new Map<string, readonly string[]>(
    Object.entries({
      INPUT: [`${jump} ${names.input}`, '-p tcp -j ACCEPT'],
      FORWARD: ['-j DOCKER-USER', `${jump} ${names.forward}`],
      'DOCKER-USER': [`${jump} ${names.forward}`, '-j RETURN'],
      ...Object.fromEntries(desired),
      ...extra,
    }),
  );

describe('the firewall’s rules', () => {
  test.each([
    ['as they were written', {}, true],
    [
      'with another daemon’s jump before theirs',
      { INPUT: [`-i ${other.bridgePrefix}+ -j ${other.input}`, `${jump} ${names.input}`] },
      true,
    ],
    [
      'with their jump in FORWARD, which doesn’t jump to Docker’s chain',
      { FORWARD: [`${jump} ${names.forward}`] },
      true,
    ],
    ['without the jump from INPUT', { INPUT: [] }, false],
    [
      'with an accepting rule before their jump',
      { INPUT: ['-p tcp -j ACCEPT', `${jump} ${names.input}`] },
      false,
    ],
    [
      'with an accepting rule before their jump in Docker’s chain',
      { 'DOCKER-USER': ['-j ACCEPT', `${jump} ${names.forward}`] },
      false,
    ],
    ['with a FORWARD that accepts, and has no jump to Docker’s chain', { FORWARD: ['-j ACCEPT'] }, false],
    ['with an emptied chain', { [names.forward]: [] }, false],
    ['with one more rule', { [names.input]: ['-j ACCEPT', ...(desired.get(names.input) ?? [])] }, false],
  ])('%s (intact: $2)', (_what, extra, intact) => {
    expect(isIntact(names, desired, written(extra))).toBe(intact);
  });

  test('are replaced in one transaction, after which every jump exists once', () => {
    const input = restoreInput(names, desired, written({ INPUT: ['-j ACCEPT', `${jump} ${names.input}`] }));
    const lines = input.trim().split('\n');
    expect([lines[0], lines.at(-1)]).toEqual(['*filter', 'COMMIT']);
    expect(lines).toContain(`-D INPUT ${jump} ${names.input}`);
    expect(lines).toContain(`-I INPUT 1 ${jump} ${names.input}`);
    expect(restoreInput(names, desired, new Map())).not.toContain('-D ');
  });

  test('are removed completely, and nothing is written if there are none', () => {
    const lines = removeInput(names, written())?.split('\n');
    for (const chain of [names.forward, names.input]) expect(lines).toContain(`-X ${chain}`);
    expect(lines?.filter((line) => line.startsWith('-D '))).toHaveLength(3);
    expect(removeInput(names, new Map([['INPUT', []]]))).toBeNull();
  });

  test('are read in the form in which iptables prints them', () => {
    const text = `# Warning: a table of another program is present\n-P INPUT ACCEPT\n-N ${names.input}\n-A INPUT ${jump} ${names.input}\n`;
    expect(parseChains(text)).toEqual(
      new Map([
        ['INPUT', [`${jump} ${names.input}`]],
        [names.input, []],
      ]),
    );
  });

  test('let a container reach its preview host, port 53 of nameservers, and no other private address', () => {
    expect(desired.get(names.input)).toEqual([
      expect.stringContaining('--ctdir REPLY -j RETURN'),
      '-d 172.17.0.1/32 -p tcp -m tcp --dport 443 -j ACCEPT',
      '-d 10.0.0.2/32 -p udp -m udp --dport 53 -j RETURN',
      '-d 10.0.0.2/32 -p tcp -m tcp --dport 53 -j RETURN',
      '-j REJECT --reject-with icmp-admin-prohibited',
    ]);
    const refused = desired.get(names.forward)?.filter((rule) => rule.includes('REJECT'));
    for (const range of ['10.0.0.0/8', '169.254.0.0/16', '10.213.0.0/16']) {
      expect(refused).toContain(`-d ${range} -j REJECT --reject-with icmp-admin-prohibited`);
    }
  });

  test('have names that fit chains and interfaces, and that differ from another host’s', () => {
    expect(names.forward.length).toBeLessThanOrEqual(28);
    expect(bridgeName(names, { start: 0xffffffc0, bits: 26 })).toHaveLength(15);
    expect(names.bridgePrefix).not.toBe(other.bridgePrefix);
  });
});
