import type { Behaviour } from '../behaviour.ts';
import { dnsBehaviours } from './dns.ts';
import { kvBehaviours } from './kv.ts';
import type { CloudflareTarget } from './target.ts';
import { workerBehaviours } from './workers.ts';

/** What the real API and the emulator both do, checked in a few hundred calls. Each behaviour removes what it makes. */
export const cloudflareBehaviours: readonly Behaviour<CloudflareTarget>[] = [
  ...dnsBehaviours,
  ...kvBehaviours,
  ...workerBehaviours,
];
