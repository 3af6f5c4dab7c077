import { foreignRemedy } from '../../base/foreign-addresses.ts';
import type { HostAnswer } from '../clients/resolvers.ts';
import type { CustomDomainView } from './domain-states.schema.ts';

export type Dns = CustomDomainView['dns'];

/** What a custom domain must lead to: the site's origin hostname, or an address of that hostname. */
interface Expected {
  readonly alias: string;
  readonly addresses: readonly string[];
}

/** The addresses that any of the resolvers knows of a host. */
export function addressesIn(answers: readonly HostAnswer[]): string[] {
  return [...new Set(answers.flatMap(({ addresses }) => addresses))].sort();
}

/**
 * The state of a custom domain in DNS by all resolvers: what more than half of them answer. `unknown`: too few answer,
 * or they disagree, as after a recent change.
 */
export function judgeDns(domain: string, expected: Expected, answers: readonly HostAnswer[]): Dns {
  const found = answers.map((answer) => stateOf(answer, expected));
  const status =
    (['ok', 'missing', 'wrong'] as const).find(
      (state) => found.filter((one) => one === state).length * 2 > answers.length,
    ) ?? 'unknown';
  return {
    status,
    detail: describe(domain, status, expected, answers),
    expected: { alias: expected.alias, addresses: [...expected.addresses] },
    answers: answers.map(({ addresses, aliases, ...one }) => ({
      ...one,
      addresses: [...addresses],
      aliases: [...aliases],
    })),
  };
}

function stateOf(
  { addresses, aliases, problem }: HostAnswer,
  expected: Expected,
): 'ok' | 'missing' | 'wrong' | 'unknown' {
  if (problem !== null) return 'unknown';
  if (addresses.length === 0 && aliases.length === 0) return 'missing';
  if (aliases.includes(expected.alias)) return 'ok';
  const areOurs = addresses.length > 0 && addresses.every((one) => expected.addresses.includes(one));
  return areOurs ? 'ok' : 'wrong';
}

function describe(
  domain: string,
  status: Dns['status'],
  { alias, addresses }: Expected,
  answers: readonly HostAnswer[],
): string | null {
  if (status === 'ok') return null;
  const target = addresses.length === 0 ? '' : `, or address records to ${addresses.join(', ')}`;
  const remedy = `set a CNAME record of ${domain} to ${alias}${target}`;
  if (status === 'missing') return `${domain} doesn’t exist in DNS: ${remedy}`;
  if (status === 'unknown') return 'too few resolvers answer, or their answers differ: check again later';
  const found = addressesIn(answers);
  const own = found.filter((one) => addresses.includes(one));
  const foreign = foreignRemedy(
    found.filter((one) => !own.includes(one)),
    own,
  );
  const places = [...new Set(answers.flatMap((one) => [...one.aliases, ...one.addresses]))];
  return `${domain} leads to ${places.join(', ')}: ${foreign === null ? '' : `${foreign}, or `}${remedy}`;
}
