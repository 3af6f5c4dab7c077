import type { PluginTexts } from '../texts.ts';

export const geoHeadersTexts: PluginTexts = {
  title: 'City',
  description: 'Tells the tag server the visitor’s city, beside country and region.',
  options: { enabled: ['Enabled', 'Off: the city isn’t told, even if the feature is on.'] },
};
