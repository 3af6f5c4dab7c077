/**
 * What the tag server answers itself: its built-in clients' paths, its health, and the preview server behind it
 * (facts: the image's own routing; GA4, web container and preview). Everything else needs a line in the manifest.
 */
export const TAG_SERVER_PATHS = [
  '/g/collect',
  '/j/collect',
  '/r/collect',
  '/mp/collect',
  '/gtm.js',
  '/gtag/js',
  '/gtag/destination',
  '/ns.html',
  '/static/*',
  '/healthy',
  '/healthz',
  '/_/*',
  '/gtm',
  '/gtm/*',
] as const;
