import type { CheckContext } from '../check.ts';
import { type Finding, failed, passed, skipped } from '../result.ts';

/** Judges the host's visits to itself through each hostname of the site, with a false address in the headers. */
export function checkClientAddress({ host }: CheckContext) {
  if (host === null) return [skipped(null, 'only the host can observe which address arrives')];
  return host.arrivals.map(({ name, from, as, problem }): Finding => {
    if (as !== null && from.includes(as)) {
      return passed(name, `a visitor of ${name} from ${as} arrives as ${as}`);
    }
    if (as === null) {
      return failed(
        name,
        `a visit to ${name} didn’t arrive: ${problem ?? 'it had no address'}`,
        'First fix what the checks dns, certificate and loader report: the visit takes the same path.',
      );
    }
    return failed(
      name,
      `a visitor of ${name} from ${from.join(' or ')} arrives as ${as}`,
      'Check that HOP_SECRET is the same on the host and in the worker, and that there is no other proxy between them.',
    );
  });
}
