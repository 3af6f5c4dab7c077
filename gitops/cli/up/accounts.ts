import type { Account } from '../../../sites/local/issuer/pages.ts';
import { DEMO_OWNER, DEMO_VIEWER, OPERATOR } from '../instance/issuer.ts';

/** The accounts of an embedded instance, in the order of their buttons. */
export const LOGIN_ACCOUNTS: readonly Account[] = [
  { subject: DEMO_OWNER, name: 'Demo owner', description: 'may do everything with the demo client' },
  { subject: DEMO_VIEWER, name: 'Demo viewer', description: 'may only read' },
  { subject: OPERATOR, name: 'Operator', description: 'manages clients and the instance' },
];
