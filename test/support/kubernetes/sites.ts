import { join } from 'node:path';
import { type Clock, systemClock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import type { Identity } from '../../../base/ownership.ts';
import {
  type GatewaySource,
  openCluster,
  type Cluster as SitesCluster,
} from '../../../gitops/kubernetes/applier/cluster.ts';
import { kubernetesSettings } from '../../../gitops/kubernetes/applier/settings.ts';
import type { KubernetesObject } from '../../../gitops/kubernetes/client/kinds.ts';
import type { Cluster } from './cluster.ts';
import { writeProgramImage } from './image.ts';

/**
 * Answers with the text of the CONTAINER_CONFIG. It ends at its start if the configuration says `env=broken`, as the real
 * image does with one that Google refuses.
 */
const SERVER = `
b=/bin/busybox
config=$(echo "$CONTAINER_CONFIG" | $b base64 -d)
case "$config" in *env=broken*) echo "server.js?$config answered 400"; exit 1;; esac
$b mkdir -p /tmp/web && echo "$config" > /tmp/web/index.html && echo ok > /tmp/web/healthz
$b httpd -f -p $PORT -h /tmp/web & server=$!
trap "kill $server" TERM
wait
`;

const IMAGE = 'tag-server.test/tag-server:1';
/** The image of the test manifests. */
const PLACEHOLDER = `sha256:${'a'.repeat(64)}`;

/** Imports the image of a tag server into every node. Returns its id. */
export async function importTagServer(cluster: Cluster): Promise<string> {
  const file = join(cluster.folder, 'tag-server.tar');
  const id = await writeProgramImage(file, {
    name: IMAGE,
    program: '/bin/busybox',
    entrypoint: ['/bin/busybox', 'sh', '-c', SERVER],
  });
  await cluster.importImages(file);
  return id;
}

interface SitesOptions {
  readonly kubeconfig: string;
  readonly identity: Identity;
  readonly log?: Log;
  readonly ordinal?: () => Promise<number | null>;
  readonly namespace?: string;
  /** What is delivered to gateways, and their namespace. */
  readonly gateway?: { readonly namespace: string; readonly source: GatewaySource };
  /** See `ClusterServices`. */
  readonly waitMs?: number;
  readonly clock?: Clock;
  /** Replaces a rendered Deployment. */
  readonly deployment?: (object: KubernetesObject) => KubernetesObject;
}

/** What the appliers use, with rollouts that take as little time as possible. */
export async function openSites({
  kubeconfig,
  identity,
  log = { info() {}, warn() {} },
  ordinal = async () => null,
  namespace = '',
  gateway,
  waitMs = 10_000,
  clock = systemClock,
  deployment = (object) => object,
}: SitesOptions): Promise<SitesCluster> {
  const opened = await openCluster(
    kubernetesSettings.parse({
      KUBECONFIG: kubeconfig,
      KUBERNETES_NAMESPACE: namespace,
      KUBERNETES_GATEWAY_NAMESPACE: gateway?.namespace,
    }),
    {
      identity,
      log,
      ordinal,
      gateway: gateway?.source ?? null,
      originPort: 443,
      edition: () => '',
      times: { refusedMs: 2_000, readMs: 2_000, longestMs: 180_000 },
      waitMs,
      clock,
    },
  );
  const render = (manifest: Parameters<SitesCluster['render']>[0]) =>
    opened
      .render(manifest)
      .map((object) => (object.kind === 'Deployment' ? deployment(atOnce(object)) : object));
  return { ...opened, render };
}

/** A Deployment whose pods end at once: until they are gone, they count for their namespace's quota. */
export function endingAtOnce(object: KubernetesObject): KubernetesObject {
  const spec = object.spec as DeploymentSpec; // as the renderer makes it
  const containers = spec.template.spec.containers.map((one) => ({ ...one, lifecycle: undefined }));
  const pod = { ...spec.template.spec, terminationGracePeriodSeconds: 1, containers };
  return { ...object, spec: { ...spec, template: { ...spec.template, spec: pod } } };
}

interface DeploymentSpec {
  readonly template: {
    readonly spec: {
      readonly containers: readonly {
        readonly image: string;
        readonly resources: object;
      }[];
    };
  };
}

/**
 * A pod is available as soon as it is ready. Pods ask for little, so that a machine can hold many sites. The imported
 * image replaces that of the test manifests.
 */
function atOnce(object: KubernetesObject): KubernetesObject {
  const spec = object.spec as DeploymentSpec; // as the renderer makes it
  const containers = spec.template.spec.containers.map((container) => ({
    ...container,
    image: container.image === PLACEHOLDER ? IMAGE : container.image,
    resources: {
      ...container.resources,
      requests: { cpu: '1m', memory: '1Mi', 'ephemeral-storage': '1Mi' },
    },
  }));
  const template = { ...spec.template, spec: { ...spec.template.spec, containers } };
  return { ...object, spec: { ...spec, minReadySeconds: 0, template } };
}
