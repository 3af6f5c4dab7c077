import type { PluginTexts } from '../texts.ts';

export const customLoaderTexts: PluginTexts = {
  title: 'Loader',
  description: 'The script that pages carry, the visitor’s id and the session.',
  options: {
    enabled: ['Enabled', 'Always on.'],
    scriptPath: [
      'Script path',
      'The end of the addresses by which a shop’s or CMS’s own plugin gets the loader, under a domain’s prefix.',
    ],
    identityDays: [
      'Days of an identity',
      'Days after which a visitor’s id and all that is kept of it end, counted from the start; default: 395.',
    ],
  },
};
