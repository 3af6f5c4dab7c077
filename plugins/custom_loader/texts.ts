import type { PluginTexts } from '../texts.ts';

export const customLoaderTexts: PluginTexts = {
  title: 'Loader',
  description: 'The script that pages load, the visitor’s id and the session.',
  options: {
    enabled: ['Enabled', 'Always on.'],
    scriptPath: [
      'Script path',
      'The last part of a path below a domain’s prefix at which a shop or CMS plugin gets the loader.',
    ],
    identityDays: [
      'Lifetime of an id in days',
      'Days from the start of a visitor’s id until it ends, with all that is kept under it; default: 395.',
    ],
  },
};
