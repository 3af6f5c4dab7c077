import { limit } from '../../../base/limit.ts';
import type { SiteDocument } from '../../../gitops/kubernetes/delivery/documents.ts';
import { ask } from '../proxy/proxy.ts';
import { startUpstream } from '../upstream.ts';
import { type GatewayProcess, GatewayStage, SITES } from './stage.ts';

const COUNT = 1_000;
const CUSTOM_DOMAINS = 200;

type Upstream = Awaited<ReturnType<typeof startUpstream>>;

/** Two gateways with 1,000 sites, of which 200 have a custom domain. The first upstream is the pod of `site-0`. */
export class ManySites implements AsyncDisposable {
  readonly stage: GatewayStage;
  readonly gateways: readonly [GatewayProcess, GatewayProcess];
  /** The address of both upstreams. */
  readonly address: string;
  readonly upstreams: readonly [Upstream, Upstream];
  readonly #owned: AsyncDisposableStack;

  private constructor(
    parts: Pick<ManySites, 'stage' | 'gateways' | 'address' | 'upstreams'>,
    owned: AsyncDisposableStack,
  ) {
    this.stage = parts.stage;
    this.gateways = parts.gateways;
    this.address = parts.address;
    this.upstreams = parts.upstreams;
    this.#owned = owned;
  }

  /** `env`: more of the gateways' environment. */
  static async start(env: NodeJS.ProcessEnv = {}): Promise<ManySites> {
    await using started = new AsyncDisposableStack();
    const stack = started.use(new AsyncDisposableStack());
    const stage = stack.use(await GatewayStage.start());
    const address = await stage.podAddress(1);
    const upstream = async (name: string) =>
      stack.adopt(await startUpstream({ address, name }), (one) => one.close());
    const upstreams = [await upstream('first'), await upstream('second')] as const;
    await stage.deliverInstance();
    await stage.deliverCertificate('tls-platform', '*.example.net');
    await stage.deliverCertificate('tls-customers', '*.customers.example');
    const gateways = [await stage.gateway('gateway-1', env), await stage.gateway('gateway-2', env)] as const;
    const sites = new ManySites({ stage, address, upstreams, gateways }, stack);
    const some = limit(25);
    const [{ port }] = upstreams;
    await Promise.all(
      Array.from({ length: COUNT }, (_, index) =>
        some(() => sites.deliver(`site-${index}`, port, index < CUSTOM_DOMAINS)),
      ),
    );
    await sites.list('site-0', port);
    await Promise.all(gateways.map((gateway) => gateway.start()));
    started.move();
    return sites;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync();
  }

  /** Delivers a site whose pods listen on this port; `custom`: with a custom domain. */
  deliver(site: string, port: number, custom = false): Promise<void> {
    const host = originOf(site);
    return this.stage.deliverSite(site, [
      { kind: 'origin', host, namespace: SITES, service: podsOf(site), port },
      ...(custom
        ? [{ kind: 'custom', host: `${site}.customers.example`, edgeHost: `${site}.example.net` } as const]
        : ([] satisfies SiteDocument['names'])),
    ]);
  }

  /** Lists an upstream as the only pod of a site. */
  list(site: string, port: number): Promise<void> {
    return this.stage.list(podsOf(site), port, [{ address: this.address }]);
  }

  /** Throws unless each gateway leads the site to this upstream. */
  async expectReaches(site: string, upstream: string): Promise<void> {
    for (const { endpoint, name } of this.gateways) {
      const { headers } = await ask(endpoint, { host: originOf(site) });
      if (headers['x-upstream'] !== upstream) {
        throw new Error(`${name} leads ${site} to ${headers['x-upstream']}`);
      }
    }
  }
}

export const originOf = (site: string) => `${site}-origin.example.net`;
const podsOf = (site: string) => `tag-${site}-processing`;
