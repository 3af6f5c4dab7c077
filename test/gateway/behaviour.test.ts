import { CLAIMS } from '../../gitops/appliers/proxy/policy.ts';
import { describeWith } from '../support/components.ts';
import { gatewayBackend } from '../support/gateway/backend.ts';
import { proxyBehaviour } from '../support/proxy/behaviour.ts';

describeWith('nginx', 'the gateway of a cluster', () => {
  proxyBehaviour('the gateway', gatewayBackend, CLAIMS.gateway);
});
