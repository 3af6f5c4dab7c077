import type { KeyPair } from './pki.ts';

/** Flags of a program, without their dashes. */
export type Flags = Readonly<Record<string, string | number | boolean>>;

interface Keys {
  /** The API server's; it is also a client of other servers. */
  readonly server: KeyPair;
  /** The administrator's. */
  readonly admin: KeyPair;
  /** Signs the tokens of service accounts. */
  readonly tokens: KeyPair;
  /** The file of the certificate authority. */
  readonly ca: string;
}

export const etcdFlags = (folder: string, clients: string, peers: string): Flags => ({
  'data-dir': folder,
  'unsafe-no-fsync': true,
  'listen-client-urls': clients,
  'advertise-client-urls': clients,
  'listen-peer-urls': peers,
});

export const apiServerFlags = ({ server, admin, tokens, ca }: Keys): Flags => ({
  'authorization-mode': 'Node,RBAC',
  'tls-cert-file': server.certificate,
  'tls-private-key-file': server.key,
  'client-ca-file': ca,
  'service-account-issuer': 'https://kubernetes.default.svc',
  'service-account-signing-key-file': tokens.key,
  'service-account-key-file': tokens.certificate,
  'kubelet-client-certificate': admin.certificate,
  'kubelet-client-key': admin.key,
  'kubelet-preferred-address-types': 'InternalIP',
  // For metrics-server: it trusts the proxy client's certificate, and is called at its own address, not its Service's.
  'requestheader-client-ca-file': ca,
  'requestheader-allowed-names': 'kube-apiserver',
  'requestheader-username-headers': 'X-Remote-User',
  'requestheader-group-headers': 'X-Remote-Group',
  'requestheader-extra-headers-prefix': 'X-Remote-Extra-',
  'proxy-client-cert-file': server.certificate,
  'proxy-client-key-file': server.key,
  'enable-aggregator-routing': true,
});

/** What controllers and scheduler have in common. */
export const clientFlags = (kubeconfig: string, machine: string): Flags => ({
  kubeconfig,
  'authentication-kubeconfig': kubeconfig,
  'authorization-kubeconfig': kubeconfig,
  'bind-address': machine,
  'leader-elect': false,
  'kube-api-qps': 500,
  'kube-api-burst': 1000,
});

export const controllerFlags = (
  { tokens, ca }: Pick<Keys, 'tokens' | 'ca'>,
  { lostAfter }: { lostAfter: number },
): Flags => ({
  'node-monitor-grace-period': `${lostAfter}s`,
  'node-monitor-period': `${Math.ceil(lostAfter / 10)}s`,
  'use-service-account-credentials': true,
  'service-account-private-key-file': tokens.key,
  'root-ca-file': ca,
  // The defaults are 15 seconds to five minutes.
  'horizontal-pod-autoscaler-sync-period': '2s',
  'horizontal-pod-autoscaler-initial-readiness-delay': '2s',
  'horizontal-pod-autoscaler-cpu-initialization-period': '5s',
  'horizontal-pod-autoscaler-downscale-stabilization': '5s',
});
