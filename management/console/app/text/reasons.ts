import type { Container } from '../data/containers.ts';
import { words } from './format.ts';

type Reason = NonNullable<Container['statusReason']>;

/** What a person does about a reason. */
const FIXES: Partial<Record<Reason, string>> = {
  provisioner_unreachable: 'The host’s provisioner doesn’t answer. It continues by itself once it does.',
  provisioner_refused: 'The host refused the manifest. Read the detail, then revert the last change.',
  provisioning_failed: 'The host could not finish. Read which step failed under Health.',
  sites_repo_unavailable: 'The sites repository can’t be reached. Nothing is lost; it is tried again.',
  site_taken: 'Another site has this name. Create the container under another name.',
  port_taken: 'Another site has a port of this one. It is tried again, and continues once the port is free.',
  domain_in_use: 'Another container has a domain of this one. Remove it there first.',
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
