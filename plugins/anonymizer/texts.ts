import type { PluginTexts } from '../texts.ts';

export const anonymizerTexts: PluginTexts = {
  title: 'Anonymizer',
  description: 'Cuts the visitor’s address, and drops or hashes parameters, before the tag server gets them.',
  options: {
    enabled: ['Enabled', 'Off: nothing is changed, even if the feature is on.'],
    address: ['Address', 'cut: the last part is removed. none: the tag server gets no address.'],
    drop: ['Dropped parameters', 'Names of parameters, or of members of JSON.'],
    hash: ['Hashed parameters', 'Their values are replaced by a keyed hash.'],
  },
};
