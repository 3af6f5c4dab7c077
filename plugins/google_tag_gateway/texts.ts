import type { PluginTexts } from '../texts.ts';

export const googleTagGatewayTexts: PluginTexts = {
  title: 'Google tag gateway',
  description: 'Serves Google’s scripts and measurement from a path of the site’s own.',
  options: {
    enabled: ['Enabled', 'Off: the path isn’t served, even if the feature is on.'],
    path: ['Path', 'A slash and 6 to 10 letters or digits, which nothing else uses.'],
    tagId: ['Tag', 'GTM-, G-, GT- or AW-. Empty: the web container of the domain.'],
    visitorAddress: ['Visitor’s address', 'On: Google gets it. Off: only country and region.'],
    acknowledged: [
      'Acknowledged',
      'Google acts as a controller of what passes here; consent stays the site’s duty.',
    ],
  },
};
