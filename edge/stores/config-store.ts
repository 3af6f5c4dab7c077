import {
  type EdgeConfigDocument,
  edgeConfigDocument,
  type LoaderTokenDocument,
  loaderTokenDocument,
  type RegistryDocument,
  type RoutingDocument,
  registryDocument,
  routingDocument,
} from '../../plugins/document.ts';
import {
  type DocumentStore,
  documentStore,
  type ReadableKv,
  type StoreDependencies,
} from './document-store.ts';

/** The KV namespaces that gitops writes. */
export interface ConfigNamespaces {
  readonly ROUTES: ReadableKv;
  readonly SITE_REGISTRY: ReadableKv;
  readonly LOADER_TOKEN_MAP: ReadableKv;
  readonly EDGE_CONFIG: ReadableKv;
}

export interface ConfigStores {
  readonly routes: DocumentStore<RoutingDocument>;
  readonly registry: DocumentStore<RegistryDocument>;
  readonly loaderTokens: DocumentStore<LoaderTokenDocument>;
  readonly edgeConfig: DocumentStore<EdgeConfigDocument>;
}

export function configStores(namespaces: ConfigNamespaces, dependencies: StoreDependencies): ConfigStores {
  return {
    routes: documentStore('ROUTES', namespaces.ROUTES, routingDocument, dependencies),
    registry: documentStore('SITE_REGISTRY', namespaces.SITE_REGISTRY, registryDocument, dependencies),
    loaderTokens: documentStore(
      'LOADER_TOKEN_MAP',
      namespaces.LOADER_TOKEN_MAP,
      loaderTokenDocument,
      dependencies,
    ),
    edgeConfig: documentStore('EDGE_CONFIG', namespaces.EDGE_CONFIG, edgeConfigDocument, dependencies),
  };
}
