import type { PluginTexts } from '../texts.ts';

export const cookieRestorationTexts: PluginTexts = {
  title: 'Cookie restoration',
  description: 'Keeps measurement cookies at the edge, and restores those that a browser has deleted early.',
  options: {
    enabled: ['Enabled', 'Off: nothing is kept or restored, even if the feature is on.'],
    cookies: ['Cookies', 'Names that may be kept and restored; a name that ends with * is a prefix.'],
    masterCookie: [
      'Master cookie',
      'An id cookie that the site’s own server sets. Cookies are kept under its value in place of _fpid.',
    ],
  },
};
