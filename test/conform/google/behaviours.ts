import type { Behaviour } from '../behaviour.ts';
import { gatewayBehaviours } from './gateway.ts';
import { tagManagerBehaviours } from './tag-manager.ts';
import type { GoogleTarget } from './target.ts';

/** What `npm run conform -- --google` and the stand-in's own test try. */
export const googleBehaviours: readonly Behaviour<GoogleTarget>[] = [
  ...tagManagerBehaviours,
  ...gatewayBehaviours,
];
