/**
 * Absent from some browsers. A Trusted Types policy makes objects that `src` accepts if the page's CSP refuses plain
 * text.
 */
declare const trustedTypes: {
  createPolicy(
    name: string,
    rules: { createScriptURL(url: string): string },
  ): { createScriptURL(url: string): string };
};

/** Copies the tag manager's preview parameters from the page's URL. */
export function withPreview(scriptUrl: string): string {
  const url = new URL(scriptUrl);
  new URLSearchParams(location.search).forEach((value, name) => {
    if (/^gtm_(auth|preview|cookies_win|debug)$/.test(name)) url.searchParams.set(name, value);
  });
  return url.href;
}

/** A script URL for pages with `require-trusted-types-for 'script'`. */
export function trusted(src: string): string {
  try {
    return trustedTypes
      .createPolicy('tagyard-loader', { createScriptURL: (url) => url })
      .createScriptURL(src);
  } catch {
    // No trusted types, or the page does not allow this policy. A default policy may accept the text.
    return src;
  }
}
