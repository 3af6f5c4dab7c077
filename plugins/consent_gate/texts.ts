import type { PluginTexts } from '../texts.ts';

export const consentGateTexts: PluginTexts = {
  title: 'Consent gate',
  description: 'Keeps hits without consent from the tag server.',
  options: {
    enabled: ['Enabled', 'Off: all hits are passed on, even if the feature is on.'],
    action: [
      'Without consent',
      'drop: the hit is not passed on. strip: without the parameters that identify the visitor (docs/plugins/consent-gate.md lists them).',
    ],
    purpose: ['Purpose', 'For which purpose consent is needed.'],
    except: ['Exceptions', 'Paths that servers call, such as webhooks: they state no consent.'],
  },
};
