import type { PluginTexts } from '../texts.ts';

export const blockAddressesTexts: PluginTexts = {
  title: 'Blocked addresses',
  description: 'Refuses the hits of visitors in listed ranges of addresses.',
  options: {
    enabled: ['Enabled', 'Off: no address is blocked, even if the feature is on.'],
    ranges: ['Ranges', 'Addresses, or ranges such as 192.0.2.0/24 and 2001:db8::/32.'],
  },
};
