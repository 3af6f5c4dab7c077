import type { PluginTexts } from '../texts.ts';

export const userIdTexts: PluginTexts = {
  title: 'User id',
  description: 'Tells the tag server an id of the visitor, with consent to analytics.',
  options: {
    enabled: ['Enabled', 'Off: no id is told, even if the feature is on.'],
    header: ['Header', 'Choose x-stape-user-id for templates that read this name.'],
  },
};
