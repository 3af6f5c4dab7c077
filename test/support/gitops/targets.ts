import { CONTAINERS } from '../../../gitops/appliers/containers/desired.ts';
import type { Traits } from '../../../gitops/appliers/contract.ts';
import { DNS } from '../../../gitops/appliers/dns/desired.ts';
import { KV, ROUTE } from '../../../gitops/appliers/edge/desired.ts';
import { PROXY } from '../../../gitops/appliers/proxy/desired.ts';

/** Traits of the targets that a daemon of the tests has, in their order, without the code that applies them. */
export const TRAITS: readonly Traits[] = [CONTAINERS, PROXY, KV, ROUTE, DNS];
export const TARGETS: readonly string[] = TRAITS.map(({ target }) => target);
export const SHARED: ReadonlySet<string> = new Set(
  TRAITS.flatMap(({ target, isShared }) => (isShared ? [target] : [])),
);
