import type { PluginTexts } from '../texts.ts';

export const botGuardTexts: PluginTexts = {
  title: 'Bots',
  description: 'Tells the tag server which hits are of bots, or refuses them.',
  options: {
    enabled: ['Enabled', 'Off: bots are neither marked nor refused, even if the feature is on.'],
    action: ['What happens to bots', 'mark: only the headers say it. refuse: their hits are not passed on.'],
    threshold: ['Threshold', 'The score above which a visitor counts as a bot.'],
    except: ['Exceptions', 'Paths that servers call, such as webhooks.'],
  },
};
