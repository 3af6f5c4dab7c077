import type { Behaviour } from '../behaviour.ts';
import { healthBehaviours } from './health.ts';
import { memoBehaviours } from './memos.ts';
import { previewBehaviours } from './preview.ts';
import { startBehaviours } from './start.ts';
import type { TagServerTarget } from './target.ts';

/** What the stand-in of the tag server must have in common with Google's image, whatever container it runs. */
export const tagServerBehaviours: readonly Behaviour<TagServerTarget>[] = [
  ...startBehaviours,
  ...healthBehaviours,
  ...previewBehaviours,
  ...memoBehaviours,
];
