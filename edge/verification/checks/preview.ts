import type { CheckContext } from '../check.ts';
import { failed, passed, skipped } from '../result.ts';
import { described, isProblem } from '../visit.ts';

/**
 * The tag server hands whatever lies under `/gtm/` to PREVIEW_SERVER_URL, and the preview server answers what it
 * doesn't know with a plain 404; where the URL is wrong the tag server says 500, where there is none, 400.
 */
const UNDER_GTM = '/gtm/tagyard-verification';

export async function checkPreviewUrl({ site, visit }: CheckContext) {
  if (!/^https:\/\/./i.test(site.preview)) {
    return [
      failed(
        null,
        `PREVIEW_SERVER_URL is ${site.preview}`,
        'The tag server takes https only: give the preview hostname a certificate.',
      ),
    ];
  }
  const answer = await visit(new URL(UNDER_GTM, site.edge));
  if (answer.status === 404 && !isProblem(answer)) {
    return [passed(null, `the processing server reaches ${site.preview}`)];
  }
  return [
    failed(
      null,
      `${site.edge}/gtm/ doesn’t lead to ${site.preview}: ${described(answer)}`,
      'The processing server must resolve the preview hostname and trust its certificate: see the checks of that name, and CONTAINER_CA_FILE for a CA of your own.',
    ),
  ];
}

export function checkSinglePreview({ host }: CheckContext) {
  if (host === null) return [skipped(null, 'only the host sees how many run')];
  const { count, problem } = host.previews;
  if (count === 1) return [passed(null, 'one preview server runs')];
  return [
    failed(
      null,
      count === null
        ? `the preview servers couldn’t be counted: ${problem}`
        : `${count} preview servers run; it must be exactly one`,
      count === 0
        ? 'Run tagyard apply; tagyard status says why it doesn’t start.'
        : 'Run tagyard apply, which removes what isn’t wanted; a debug session would see half of the requests.',
    ),
  ];
}

/** A path that ends with `/gtm` or holds `/gtm/` goes to the preview server (facts of Google's image). */
export function checkPathPrefix({ site }: CheckContext) {
  const taken = [new URL(site.preview).pathname, ...site.proxyPaths].filter((path) =>
    /\/gtm(?:\/|$)/.test(path),
  );
  if (taken.length === 0) return [passed(null, 'no path of the site has /gtm in it')];
  return [
    failed(
      null,
      `the tag server would hand ${taken.join(', ')} to its preview server`,
      'Name the paths otherwise in modules.server_proxy.paths: /gtm is the preview server’s.',
    ),
  ];
}
