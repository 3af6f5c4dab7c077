/**
 * The paths that the tag server answers: those of its built-in clients, its health, and the preview server behind it
 * (docs/facts.md: the image's routing). Any other path needs a line in the manifest.
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

export const VENDOR_SCRIPT_PATH = '/c/:token.js';
