import { chmod, mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { systemClock } from '../../../base/clock.ts';
import { RetryableError } from '../../../base/errors.ts';
import type { ProxyBackend, ProxyEndpoint, ProxySettings } from '../../../gitops/appliers/proxy/backend.ts';
import type { ProxySpec } from '../../../gitops/appliers/proxy/desired.ts';
import { NO_TRUSTED_PEERS } from '../../../gitops/appliers/proxy/policy.ts';
import { assignProxyPorts } from '../../../gitops/appliers/proxy/ports.ts';
import type { InstanceDocument, SiteDocument } from '../../../gitops/kubernetes/delivery/documents.ts';
import type { Delivered } from '../../../gitops/kubernetes/delivery/secrets.ts';
import { GatewayAgent } from '../../../gitops/kubernetes/gateway/agent.ts';
import type { PodEndpoint } from '../../../gitops/kubernetes/gateway/peers.ts';
import { Saved } from '../../../gitops/kubernetes/gateway/saved.ts';
import { NGINX_SETTINGS } from '../proxy/nginx.ts';

/**
 * A gateway in place of a host's proxy, so that the same checks test both. Each change becomes a Secret, and each
 * upstream becomes an endpoint of a service.
 */
export function gatewayBackend(settings: ProxySettings): ProxyBackend {
  const directory = settings.prefix;
  const secrets = new Map<string, Delivered>();
  const endpoints = new Map<string, PodEndpoint[]>();
  let agent: GatewayAgent | null = null;
  let endpoint: ProxyEndpoint | null = null;
  let faults: ReadonlyMap<string, string> = new Map();

  const instance = (): InstanceDocument => ({
    version: 1,
    hopSecret: { current: settings.hopSecret },
    trusted: {
      cloudflare: [...(settings.trusted?.() ?? NO_TRUSTED_PEERS).cloudflare],
      own: [...(settings.trusted?.() ?? NO_TRUSTED_PEERS).own],
    },
    edge: settings.edgeUpstream,
    ...(settings.challengeKey === undefined ? {} : { challengeKey: settings.challengeKey }),
  });

  function documentOf(key: string, { site, vhosts }: ProxySpec): SiteDocument {
    const names = vhosts.map((vhost): SiteDocument['names'][number] => {
      const { host } = vhost;
      if (vhost.kind === 'custom') {
        const { kind, edgeHost, options } = vhost;
        return { kind, host, edgeHost, options };
      }
      if (vhost.kind === 'policy') {
        const { kind, token, script } = vhost;
        return { kind, host, token, script };
      }
      const service = `${key}-${vhost.kind}`;
      endpoints.set(
        `tests/${service}`,
        vhost.upstreams.map((upstream) => ({ ...upstream, state: 'ready' })),
      );
      const port = vhost.upstreams[0]?.port ?? 0;
      return { kind: vhost.kind, host, namespace: 'tests', service, port, options: vhost.options };
    });
    return { version: 1, site, names };
  }

  async function certificates(spec: ProxySpec): Promise<void> {
    for (const { host, tls } of spec.vhosts) {
      const paths = await settings.certificates.pathsFor(host, tls ?? 'files');
      if (paths === null) continue;
      const [cert, key] = [await readFile(paths.cert, 'utf8'), await readFile(paths.key, 'utf8')];
      secrets.set(`tls-${host}`, { kind: 'certificate', cert, key });
    }
  }

  const deliver = async () => {
    secrets.set('instance', { kind: 'instance', document: instance() });
    faults = (await agent?.deliver(new Map(secrets))) ?? faults;
  };

  return {
    async start() {
      // nginx's workers run as another user.
      await chmod(dirname(directory), 0o711);
      await mkdir(directory, { recursive: true, mode: 0o711 });
      const wanted = {
        httpPort: settings.httpPort,
        tlsPort: settings.tlsPort,
        statusPort: 0,
        resolverPort: 0,
        policyPort: 0,
      };
      const ports = await assignProxyPorts(join(directory, 'ports.json'), settings.listen, wanted);
      const { listen, ca } = settings;
      agent = new GatewayAgent(
        {
          ...NGINX_SETTINGS,
          directory,
          listen,
          ...ports,
          frontRanges: null,
          ...(ca === undefined ? {} : { ca }),
        },
        {
          clock: systemClock,
          log: { info: () => undefined, warn: () => undefined },
          endpointsOf: (service) => endpoints.get(service) ?? null,
        },
      );
      for (const [name, delivered] of await new Saved(directory).deliveries()) secrets.set(name, delivered);
      await agent.open();
      if (secrets.size === 0) await deliver();
      endpoint = { address: '127.0.0.1', ...ports };
      return endpoint;
    },
    endpoint() {
      if (endpoint === null) throw new Error('the gateway is not started');
      return endpoint;
    },
    async installed() {
      return [...secrets].flatMap(([key, delivered]) =>
        delivered.kind === 'site'
          ? [{ key, mark: undefined, intact: !faults.has(key), outdated: false, names: null, path: key }]
          : [],
      );
    },
    async install(changes) {
      const before = JSON.stringify([...secrets]);
      for (const { key, spec } of changes) {
        if (spec === null) secrets.delete(key);
        else {
          await certificates(spec);
          secrets.set(key, { kind: 'site', document: documentOf(key, spec) });
        }
      }
      await deliver();
      const changed = JSON.stringify([...secrets]) !== before;
      return changes.map(({ key }) => {
        const fault = faults.get(key);
        return fault === undefined
          ? { status: 'fulfilled', value: { changed } }
          : { status: 'rejected', reason: new RetryableError(fault) };
      });
    },
    async *events() {
      // The agent itself starts nginx again.
    },
    close: async () => await agent?.release(),
  };
}
