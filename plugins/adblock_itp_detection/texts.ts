import type { PluginTexts } from '../texts.ts';

export const adblockItpDetectionTexts: PluginTexts = {
  title: 'Detection of ad blockers and ITP',
  description: 'Reports to the tag server whether a browser blocks tags or shortens the lifetime of cookies.',
  options: {
    enabled: ['Enabled', 'Off: signals of pages are accepted, but not forwarded to the tag server.'],
  },
};
