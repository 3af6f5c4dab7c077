import type { PluginTexts } from '../texts.ts';

export const multiDomainTexts: PluginTexts = {
  title: 'Several domains',
  description: 'Serves all domains of a container, not only the first one.',
  options: { enabled: ['Enabled', 'Off: only the first domain is served, even if the feature is on.'] },
};
