import type { CheckContext } from '../check.ts';
import { failed, passed, skipped } from '../result.ts';
import { described, isProblem } from '../visit.ts';

/**
 * The tag server forwards paths under `/gtm/` to PREVIEW_SERVER_URL, and the preview server answers an unknown one with a
 * plain 404. The tag server answers 500 if the URL is wrong, and 400 if there is none.
 */
const UNDER_GTM = '/gtm/tagyard-verification';

export async function checkPreviewUrl({ site, host, visit }: CheckContext) {
  if (!/^https:\/\/./i.test(site.preview)) {
    return [
      failed(
        null,
        `PREVIEW_SERVER_URL is ${site.preview}`,
        'The tag server takes https only: give the preview hostname a certificate.',
      ),
    ];
  }
  const { problem = null, fix = null } = host?.previewPath ?? {};
  if (problem !== null)
    return [failed(null, problem, fix ?? 'See tagyard status for the site’s containers.')];
  const answer = await visit(new URL(UNDER_GTM, site.edge));
  if (answer.status === 404 && !isProblem(answer)) {
    return [passed(null, `the processing server reaches ${site.preview}`)];
  }
  return [
    failed(
      null,
      `${site.edge}/gtm/ doesn’t lead to ${site.preview}: ${described(answer)}`,
      'The processing server must resolve the preview hostname and trust its certificate: read the checks of that name. For a CA of your own, set CONTAINER_CA_FILE.',
    ),
  ];
}

export function checkSinglePreview({ host }: Pick<CheckContext, 'host'>) {
  if (host === null) return [skipped(null, 'only the host knows how many preview servers run')];
  const { count, problem } = host.previews;
  if (count === 1) return [passed(null, 'one preview server runs')];
  if (count === null) {
    return [
      failed(
        null,
        `the preview servers couldn’t be counted: ${problem}`,
        'Check that the site’s host reaches what runs its containers (Docker or the cluster), then verify again.',
      ),
    ];
  }
  return [
    failed(
      null,
      `${count} preview servers run; it must be exactly one`,
      count === 0
        ? 'Run tagyard apply. tagyard status says why it doesn’t start.'
        : 'Run tagyard apply, which removes what isn’t wanted: with two servers, a debug session misses half of the requests.',
    ),
  ];
}

/** The tag server forwards a path that ends with `/gtm` or contains `/gtm/` to the preview server (docs/facts.md). */
export function checkPathPrefix({ site }: CheckContext) {
  const taken = [new URL(site.preview).pathname, ...site.proxyPaths].filter((path) =>
    /\/gtm(?:\/|$)/.test(path),
  );
  if (taken.length === 0) return [passed(null, 'no path of the site has a segment /gtm')];
  return [
    failed(
      null,
      `the tag server would hand ${taken.join(', ')} to its preview server`,
      'Rename the paths in modules.server_proxy.paths: /gtm belongs to the preview server.',
    ),
  ];
}
