import type { Container } from '../data/containers.ts';
import { words } from './format.ts';

type Reason = NonNullable<Container['statusReason']>;

/** What a person does about a reason. */
const FIXES: Partial<Record<Reason, string>> = {
  provisioner_unreachable:
    'The host’s provisioner could not be reached. Create the container again once it answers.',
  provisioner_refused: 'The host refused the manifest. Read the detail, then create the container again.',
  provisioning_failed: 'The host could not finish. Under Health, read which step failed.',
  sites_repo_unavailable:
    'The sites repository could not be written. Create the container again once it can be.',
  site_taken: 'Another site has this name. Create the container under another name.',
  port_taken: 'Another site has a port of this one. Setup continues by itself once the port is free.',
  domain_in_use: 'Another container has a domain of this one. Remove the domain there first.',
};

interface Explanation {
  readonly what: string;
  readonly fix: string | null;
}

/** What is wrong with a container, and what to do; `null`: all is well. */
export function explain({
  status,
  statusReason,
  health,
  suspended,
}: Pick<Container, 'status' | 'statusReason' | 'health' | 'suspended'>): Explanation | null {
  if (status === 'failed') {
    return {
      what: statusReason === null ? 'Setting it up failed' : words(statusReason),
      fix: (statusReason && FIXES[statusReason]) ?? 'Open it to read the reason.',
    };
  }
  if (status === 'verification_failed') {
    return { what: 'The last verification failed', fix: 'Open it to see which check, and its fix.' };
  }
  if (health === 'degraded') {
    return {
      what: statusReason === null ? 'The host reports trouble' : words(statusReason),
      fix: (statusReason && FIXES[statusReason]) ?? 'The last good state serves until it is solved.',
    };
  }
  if (suspended) {
    return { what: 'Changes are not applied while it is suspended', fix: 'Resume it to apply them.' };
  }
  return null;
}
