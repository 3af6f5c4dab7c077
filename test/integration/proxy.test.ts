import { nginxBackend } from '../../gitops/appliers/proxy/nginx/backend.ts';
import { embeddedBackend } from '../../gitops/embedded/proxy/backend.ts';
import { describeWith } from '../helpers/components.ts';
import { NGINX } from '../helpers/nginx.ts';
import { proxyBehaviour } from './proxy-behaviour.ts';

proxyBehaviour('the embedded proxy', embeddedBackend);

describeWith('nginx', 'with nginx', () => {
  proxyBehaviour('nginx', (settings) => nginxBackend({ ...settings, bin: NGINX, workerProcesses: 1 }));
});
