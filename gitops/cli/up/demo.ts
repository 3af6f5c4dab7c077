import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Home, Instance } from '../instance/home.ts';
import { DEMO_OWNER, DEMO_VIEWER, mintToken, OPERATOR } from '../instance/issuer.ts';
import { type CreatedContainer, ManagementClient } from '../instance/management-client.ts';

export const DEMO_DOMAIN = 'shop.localhost';
const DEMO_TAG = 'GTM-DEMO1234';

/** How long a start waits for the demo site. A site that takes longer is reported as `provisioning`. */
const TIMEOUT_MS = 20_000;

export interface Demo {
  readonly clientId: string;
  readonly token: string;
  readonly container: CreatedContainer;
}

/** The demo client with one site. The first start creates both through the public API. */
export async function ensureDemo(home: Home, instance: Instance, managementUrl: string): Promise<Demo> {
  const token = await mintToken(instance, DEMO_OWNER);
  const api = new ManagementClient(managementUrl, token);
  const known = instance.demo === null ? null : await api.container(instance.demo.containerId);
  const operator = new ManagementClient(managementUrl, await mintToken(instance, OPERATOR));
  if (known !== null && instance.demo !== null) {
    const { clientId, hasViewer } = instance.demo;
    if (!hasViewer) {
      await operator.setMember(clientId, DEMO_VIEWER, 'viewer');
      await home.save({ ...instance, demo: { ...instance.demo, hasViewer: true } });
    }
    return { clientId, token, container: known };
  }
  const clientId = await operator.addClient('Demo', [
    { subject: DEMO_OWNER, role: 'owner' },
    { subject: DEMO_VIEWER, role: 'viewer' },
  ]);
  const config = new URLSearchParams({
    id: 'GTM-SRVDEMO1',
    env: '1',
    auth: randomUUID().replaceAll('-', ''),
  });
  const container = await api.createContainer(
    {
      clientId,
      name: 'Demo Shop',
      domains: [DEMO_DOMAIN],
      webTagIds: { [DEMO_DOMAIN]: DEMO_TAG },
      containerConfigB64: Buffer.from(config.toString()).toString('base64'),
      features: { cookie_restoration: true },
      // An idle preview server would take as much memory as the processing server.
      resources: { preview: { onDemand: true } },
    },
    `demo-${instance.instance}-${clientId}`,
  );
  await home.save({ ...instance, demo: { clientId, containerId: container.id, hasViewer: true } });
  return { clientId, token, container };
}

/** Polls until the demo site is active or has failed, or the timeout has passed. */
export async function awaitDemo(demo: Demo, managementUrl: string): Promise<CreatedContainer> {
  const api = new ManagementClient(managementUrl, demo.token);
  const deadline = Date.now() + TIMEOUT_MS;
  let container = demo.container;
  while (container.status === 'provisioning' && Date.now() < deadline) {
    await wait(100);
    container = (await api.container(container.id)) ?? container;
  }
  return container;
}
