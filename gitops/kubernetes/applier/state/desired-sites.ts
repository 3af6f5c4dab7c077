import { contentHash } from '../../../../base/ownership.ts';
import type { KubernetesObject } from '../../client/kinds.ts';
import type { RenderedFor } from './object-spec.ts';

/** An object of a client, with the hash of its content. */
export interface ClientObject {
  readonly object: KubernetesObject;
  readonly hash: string;
}

/** Renders a client's namespace, then its quota and default policy; nothing if all clients use one given namespace. */
export type RenderClient = (client: string, sites: readonly RenderedFor[]) => readonly KubernetesObject[];

/**
 * The desired sites of this host by client, and the objects that each client needs for them. These are rendered again
 * only when the client's sites change, because each write for a site asks for them.
 */
export class DesiredSites {
  readonly #render: RenderClient;
  readonly #sites = new Map<string, RenderedFor>();
  readonly #ofClient = new Map<string, Map<string, RenderedFor>>();
  readonly #rendered = new Map<string, readonly ClientObject[]>();

  constructor(render: RenderClient) {
    this.#render = render;
  }

  /** Replaces the desired sites: those of the whole host (`scope` is `null`), or those in `scope`. */
  replace(manifests: Iterable<RenderedFor>, scope: ReadonlySet<string> | null): void {
    const wanted = new Map([...manifests].map((manifest) => [manifest.site, manifest]));
    for (const { site } of [...this.#sites.values()]) {
      if ((scope?.has(site) ?? true) && !wanted.has(site)) this.#drop(site);
    }
    for (const manifest of wanted.values()) this.put(manifest);
  }

  put(manifest: RenderedFor): void {
    const { site, client, resources } = manifest;
    const known = this.#sites.get(site);
    if (known?.client === client && known.resources === resources) return;
    this.#drop(site);
    this.#sites.set(site, manifest);
    const own = this.#ofClient.get(client) ?? new Map<string, RenderedFor>();
    this.#ofClient.set(client, own.set(site, manifest));
    this.#rendered.delete(client);
  }

  has(site: string): boolean {
    return this.#sites.has(site);
  }

  hasClient(client: string): boolean {
    return this.#ofClient.has(client);
  }

  /** The clients that have a desired site. */
  get clients(): Iterable<string> {
    return this.#ofClient.keys();
  }

  objectsOf(client: string): readonly ClientObject[] {
    const known = this.#rendered.get(client);
    if (known !== undefined) return known;
    const sites = [...(this.#ofClient.get(client)?.values() ?? [])];
    const rendered = this.#render(client, sites).map((object) => ({ object, hash: contentHash(object) }));
    if (sites.length > 0) this.#rendered.set(client, rendered);
    return rendered;
  }

  #drop(site: string): void {
    const client = this.#sites.get(site)?.client;
    if (client === undefined) return;
    this.#sites.delete(site);
    const own = this.#ofClient.get(client);
    own?.delete(site);
    if (own?.size === 0) this.#ofClient.delete(client);
    this.#rendered.delete(client);
  }
}
