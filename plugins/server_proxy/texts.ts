import type { PluginTexts } from '../texts.ts';

export const serverProxyTexts: PluginTexts = {
  title: 'Proxy of the tag server',
  description: 'Forwards hits and scripts to the tag server, and serves the vendor’s script from the edge.',
  options: {
    enabled: ['Enabled', 'Always on.'],
    paths: [
      'Paths',
      'Paths that are forwarded in addition to the built-in ones; one that ends with /* is a prefix.',
    ],
    tagServingPath: [
      'Tag serving path',
      'The tag serving path of the web container client, a prefix that Tag Manager generates.',
    ],
    passthrough: ['All paths', 'Forwards every path that isn’t the edge’s own.'],
    cookies: [
      'Cookies',
      'Cookies that the tag server gets in addition to the usual ones; a name, or a prefix with * at the end.',
    ],
    dataLayers: ['Data layers', 'Names of the pages’ data layers, beside dataLayer.'],
  },
};
