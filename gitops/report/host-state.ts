import { meaningOf, refusalOf, type ShownSite, toldOf } from './report.ts';
import { faultsIn } from './site-condition.ts';
import { type SiteState, siteState } from './site-state.ts';

/** The state of a site by what its host alone knows. */
export function hostState(site: Omit<ShownSite, 'resources' | 'state'>): SiteState {
  const { reason, message, applied, health, suspended, servingOff, conditions = [] } = site;
  const meaning = meaningOf(reason);
  const told = toldOf(reason, message);
  const refusal = meaning === 'gone' ? null : refusalOf(site);
  const [fault] = faultsIn(conditions);
  const isUp = applied !== null && meaning !== 'gone';
  const isFailing = meaning === 'trouble' || (meaning === 'well' && health === 'degraded');
  return siteState({
    removal: meaning !== 'gone' ? null : reason === 'Removed' ? 'done' : 'running',
    isOff: servingOff === true,
    fault:
      isUp && fault !== undefined
        ? { of: 'host', detail: `${fault.condition}: ${fault.message}` }
        : isUp && isFailing
          ? { of: 'host', detail: meaning === 'trouble' ? told : null }
          : null,
    refusal: refusal === null ? null : { of: 'manifest', detail: refusal },
    setup: applied === null && meaning !== 'gone' ? { detail: told } : null,
    unserved: [],
    pause: suspended === true ? { detail: meaning === 'suspended' ? message : null } : null,
  });
}
