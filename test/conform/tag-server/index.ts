import type { Behaviour } from '../behaviour.ts';
import { healthBehaviours } from './health.ts';
import { memoBehaviours } from './memos.ts';
import { previewBehaviours } from './preview.ts';
import { previewNameBehaviours } from './preview-name.ts';
import { startBehaviours } from './start.ts';
import type { ContainerTarget, TagServerTarget } from './target.ts';

/** What the stand-in of the tag server must have in common with Google's image, whatever GTM container it runs. */
export const tagServerBehaviours: readonly Behaviour<TagServerTarget>[] = [
  ...startBehaviours,
  ...healthBehaviours,
  ...previewBehaviours,
  ...memoBehaviours,
];

/** The same behaviours, and those that only containers can show, because they have a hosts file of their own. */
export const containerBehaviours: readonly Behaviour<ContainerTarget>[] = [
  ...tagServerBehaviours,
  ...previewNameBehaviours,
];
