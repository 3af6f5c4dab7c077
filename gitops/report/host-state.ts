import { meaningOf, refusalIn, type ShownSite, toldOf } from './report.ts';
import { faultsIn } from './site-condition.ts';
import { type Health, type SiteFacts, type SiteState, siteHealth, siteState } from './site-state.ts';

/** What a host says of a site; management reads it from hosts of any version. */
interface ReportedSite {
  readonly reason: string;
  readonly message: string;
  readonly partial?: true | undefined;
  readonly heldRemoval?: string | undefined;
  readonly conditions?: readonly { readonly condition: string; readonly message: string }[] | undefined;
}

/** What goes wrong with a site on its host. */
interface Trouble {
  readonly detail: string;
  /** The site is served all the same: only some of its servers fail. */
  readonly isPartial: boolean;
}

/**
 * What the status of a site that is up says to go wrong; `null`: nothing. `told`: a reason or condition with its
 * message, for the reader.
 */
export function troubleOf(
  { reason, message, partial, heldRemoval, conditions = [] }: ReportedSite,
  told = toldOf,
): Trouble | null {
  // A removal that waits for an approval is no fault.
  const isTrouble = meaningOf(reason) === 'trouble' && toldOf(reason, message) !== heldRemoval;
  const faults = faultsIn(conditions).map((one) => told(one.condition, one.message));
  const details = [...(isTrouble ? [told(reason, message)] : []), ...faults];
  if (details.length === 0) return null;
  return { detail: details.join('; '), isPartial: !isTrouble || partial === true };
}

/** The state and health of a site by what its host alone knows. */
export function hostState(site: Omit<ShownSite, 'resources' | 'state' | 'health'>): {
  readonly state: SiteState;
  readonly health: Health;
} {
  const { reason, message, applied, suspended, servingOff, heldRemoval } = site;
  const meaning = meaningOf(reason);
  const told = toldOf(reason, message);
  const refusal = meaning === 'gone' ? null : (heldRemoval ?? refusalIn(site));
  const isUp = applied !== null && meaning !== 'gone';
  const trouble = isUp ? troubleOf(site) : null;
  const facts: SiteFacts = {
    removal: meaning !== 'gone' ? null : reason === 'Removed' ? 'done' : 'running',
    isOff: servingOff === true,
    fault: trouble === null || trouble.isPartial ? null : { of: 'host', detail: trouble.detail },
    partial: trouble?.isPartial ? { detail: trouble.detail } : null,
    silence: null,
    refusal:
      refusal === null ? null : { of: heldRemoval === undefined ? 'manifest' : 'removal', detail: refusal },
    setup: applied === null && meaning !== 'gone' ? { detail: told } : null,
    unserved: [],
    pause: suspended === true ? { detail: meaning === 'suspended' ? message : null } : null,
  };
  return { state: siteState(facts), health: siteHealth(facts) };
}
