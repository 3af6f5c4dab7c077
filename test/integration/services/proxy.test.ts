import { embeddedBackend } from '../../../gitops/appliers/proxy/embedded/backend.ts';
import { nginxBackend } from '../../../gitops/appliers/proxy/nginx/backend.ts';
import { describeWith } from '../../support/components.ts';
import { proxyBehaviour } from '../../support/proxy/behaviour.ts';
import { NGINX_SETTINGS } from '../../support/proxy/nginx.ts';

proxyBehaviour('the embedded proxy', embeddedBackend);

describeWith('nginx', 'with nginx', () => {
  proxyBehaviour('nginx', (settings) => nginxBackend({ ...settings, ...NGINX_SETTINGS }));
});
