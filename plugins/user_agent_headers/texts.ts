import type { PluginTexts } from '../texts.ts';

export const userAgentHeadersTexts: PluginTexts = {
  title: 'Device and browser',
  description: 'Tells the tag server the kind of device, the system and the browser.',
  options: { enabled: ['Enabled', 'Off: nothing is told, even if the feature is on.'] },
};
