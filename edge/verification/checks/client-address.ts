import type { CheckContext } from '../check.ts';
import { type Finding, failed, passed, skipped } from '../result.ts';

/** The host has visited itself by each way in, with a false address in its headers. */
export function checkClientAddress({ host }: CheckContext) {
  if (host === null) return [skipped(null, 'only the host sees which address arrives')];
  return host.arrivals.map(({ name, from, as, problem }): Finding => {
    if (as !== null && from.includes(as)) {
      return passed(name, `a visitor of ${name} from ${as} arrives as ${as}`);
    }
    if (as === null) {
      return failed(
        name,
        `a visit of ${name} didn’t arrive: ${problem ?? 'no address came'}`,
        'Mend the checks of this host’s name, certificate and loader first; the visit takes the same way.',
      );
    }
    return failed(
      name,
      `a visitor of ${name} from ${from.join(' or ')} arrives as ${as}`,
      'See that HOP_SECRET is the same on the host and in the worker, and that no other proxy stands between them.',
    );
  });
}
