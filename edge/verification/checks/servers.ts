import type { CheckContext } from '../check.ts';
import { failed, passed, skipped } from '../result.ts';
import { described, isProblem, type Visit } from '../visit.ts';

/** The statuses that a proxy returns if its upstream is down; `null`: no answer. */
const GATEWAY_ERRORS: readonly (number | null)[] = [null, 502, 504];

/** True for Cloudflare's own statuses: no server has given a valid answer (docs/facts.md). */
const isUnreached = (status: number | null) => status !== null && status >= 520 && status <= 530;

/** The tag server answers its health on every path that ends with this (docs/facts.md). */
const HEALTH = '/healthy';

/** Only the host can read the encrypted configuration. Whether a server runs with it can be observed from outside. */
export async function checkContainerConfig({ site, host, visit }: CheckContext) {
  if (host?.config.problem) {
    return [
      failed(
        null,
        `the container configuration can’t be used: ${host.config.problem}`,
        'Copy the configuration again from Tag Manager (Admin, Container settings, Manually provision) into the site.',
      ),
    ];
  }
  const health = await visit(new URL(HEALTH, site.edge));
  if (isUnreached(health.status)) {
    return [skipped(null, `whether a server runs can’t be observed: ${described(health)}`)];
  }
  if (GATEWAY_ERRORS.includes(health.status)) {
    return [
      failed(
        null,
        `no server runs with the container configuration: ${described(health)}`,
        'See tagyard status for why it doesn’t start. If Google refuses the configuration, the server exits at once: copy it again from Tag Manager.',
      ),
    ];
  }
  if (host === null) return [skipped(null, 'a server runs; only its host can read the configuration')];
  return [
    passed(null, `a server of ${host.config.id ?? 'the container'} runs with the container configuration`),
  ];
}

export async function checkProcessingHealth({ site, visit }: CheckContext) {
  const health = await visit(new URL(HEALTH, site.edge));
  if (isHealthy(health)) return [passed(null, `${site.edge}${HEALTH} is healthy`)];
  return [
    failed(
      null,
      `${site.edge}${HEALTH}: ${described(health)}`,
      isProblem(health)
        ? 'The edge doesn’t reach the tag server: see tagyard status for its container, and the checks of the origin’s name and certificate.'
        : 'The processing container isn’t healthy: tagyard status says why. A container of 12 days or more reports this on purpose and is replaced.',
    ),
  ];
}

export async function checkPreviewHealth({ site, visit }: CheckContext) {
  const url = new URL('/healthz', site.preview);
  const health = await visit(url);
  if (isHealthy(health)) return [passed(null, `${url.href} is healthy`)];
  return [
    failed(
      null,
      `${url.href}: ${described(health)}`,
      'The preview container isn’t healthy or can’t be reached: see tagyard status, and the checks of the preview’s name and certificate.',
    ),
  ];
}

function isHealthy(visit: Visit): boolean {
  return visit.status === 200 && !isProblem(visit);
}
