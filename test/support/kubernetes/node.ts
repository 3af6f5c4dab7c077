import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../eventually.ts';
import { createGroup, ip, Part, run } from './machine.ts';
import type { KeyPair, Pki } from './pki.ts';

/** What all nodes of a cluster have in common. */
export interface ClusterNetwork {
  /** The beginning of all names that the cluster makes on the machine. */
  readonly id: string;
  /** The cluster's folder. */
  readonly folder: string;
  /** The folder of the programs. */
  readonly programs: string;
  /** The namespace of the bridge between the nodes. */
  readonly bridge: string;
  /** The first three octets of the machine's and the nodes' addresses; the machine has `.1`. */
  readonly nodes: string;
  /** The first two octets of the pods' addresses; the third is the number of the node. */
  readonly pods: string;
  /** The address of the pods' name server. */
  readonly dns: string;
  readonly count: number;
  /** Seconds: a node that says nothing for this time counts as lost. */
  readonly lostAfter: number;
  readonly pki: Pki;
  writeKubeconfig(name: string, pair: KeyPair): Promise<string>;
}

/** What a node is cut off from: the API server, the other nodes' pods, or everything. */
type CutFrom = 'api' | 'pods' | 'all';

/**
 * A node with a real kubelet, containerd and kube-proxy. They and its pods are in namespaces of their own. The network
 * namespace keeps its routes and rules out of the machine's. Because of the process and mount namespaces, the end
 * of the first process ends and unmounts everything, as if the machine lost its power.
 */
export class ClusterNode {
  readonly name: string;
  readonly address: string;
  readonly #number: number;
  readonly #network: ClusterNetwork;
  readonly #folder: string;
  readonly #namespace: string;
  #init: Part | null = null;

  constructor(network: ClusterNetwork, number: number) {
    this.name = `node-${number}`;
    this.address = `${network.nodes}.${10 + number}`;
    this.#number = number;
    this.#network = network;
    this.#folder = join(network.folder, this.name);
    this.#namespace = `${network.id}-${number}`;
  }

  /** Makes the node's network and files, and starts it. */
  async create(): Promise<void> {
    for (const name of ['cni', 'kubelet', 'containerd', 'state', 'logs']) {
      await mkdir(join(this.#folder, name), { recursive: true });
    }
    await this.#connect();
    await createGroup(this.#group);
    await this.#writeSettings();
    await this.start();
  }

  /** Starts a node that was created, or killed. */
  async start(): Promise<void> {
    const { programs } = this.#network;
    const at = (name: string) => join(this.#folder, name);
    // The first process of the namespace: bash, because it also reaps processes whose parents have ended.
    const script = `
      mount --make-rshared /
      '${programs}/containerd' -c '${at('containerd.toml')}' >>'${at('logs/containerd.log')}' 2>&1 &
      until '${programs}/ctr' -a '${this.#socket}' version >/dev/null 2>&1; do sleep 0.1; done
      '${programs}/kubelet' --config '${at('kubelet.yaml')}' --kubeconfig '${at('kubeconfig')}' \
        --hostname-override ${this.name} --node-ip ${this.address} --root-dir '${at('kubelet')}' \
        >>'${at('logs/kubelet.log')}' 2>&1 &
      '${programs}/kube-proxy' --config '${at('kube-proxy.yaml')}' >>'${at('logs/kube-proxy.log')}' 2>&1 &
      wait`;
    const apart = ['unshare', '--mount', '--pid', '--fork', '--kill-child=KILL', '--mount-proc'];
    this.#init = new Part({
      log: at('logs/init.log'),
      argv: [...this.#inside, ...apart, 'bash', '-c', script],
      env: { PATH: `${programs}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin` },
    });
    const init = this.#init;
    await eventually(() => this.#ctr('version'), { timeoutMs: 120_000, until: () => !init.isRunning }).catch(
      async (error: Error) => {
        init.check();
        const log = await readFile(at('logs/containerd.log'), 'utf8').catch(() => 'it has no log');
        throw new Error(`containerd doesn’t answer: ${error.message}\n${log.slice(-2_000)}`);
      },
    );
  }

  /** Ends everything on the node at once, as a power cut does. */
  async kill(): Promise<void> {
    await this.#init?.end();
    this.#init = null;
  }

  /** Cuts the node off until `heal`. */
  async cut(from: CutFrom): Promise<void> {
    if (from === 'all') return await ip(`link set ${this.#port} down`, this.#network.bridge);
    for (const rule of this.#rules(from)) await this.#iptables('--insert', rule);
  }

  /** Ends all cuts. */
  async heal(): Promise<void> {
    await ip(`link set ${this.#port} up`, this.#network.bridge);
    for (const rule of [...this.#rules('api'), ...this.#rules('pods')]) {
      // Fails for a rule that isn't there.
      await this.#iptables('--delete', rule).catch(() => undefined);
    }
    // After a cut, TCP waits about as long as the cut has lasted before it sends again. So its connections are ended.
    await run(...this.#inside, 'ss', '--kill', 'dst', `${this.#network.nodes}.1`, 'dport', '=', '6443');
  }

  /**
   * Drops packets from an address to a port of the node's pods, like a network plugin that enforces policies;
   * `--delete` ends it.
   */
  async refuse(from: string, port: number, verb: '--insert' | '--delete' = '--insert'): Promise<void> {
    await this.#iptables(verb, `FORWARD -s ${from} -o pods0 -p tcp --dport ${port} -j DROP`);
  }

  /** Imports images from a file in the form of `docker save`. */
  async importImages(file: string): Promise<void> {
    await this.#ctr('--namespace', 'k8s.io', 'images', 'import', file);
  }

  /** Imports the image of such a file, named by the repository and its digest. Returns the digest. */
  async importByDigest(file: string, repository: string): Promise<string> {
    const images = ['--namespace', 'k8s.io', 'images'];
    await this.#ctr(...images, 'import', '--digests', '--base-name', repository, file);
    const names = (await this.#ctr(...images, 'list', '--quiet')).split('\n');
    const name = names.find((one) => one.startsWith(`${repository}@sha256:`));
    if (name === undefined) throw new Error(`${file} has no image of ${repository}`);
    return name.slice(repository.length + 1);
  }

  /** Removes a repository's images: containers that run continue, and no pod can be started with these images. */
  async removeImages(repository: string): Promise<void> {
    const images = ['--namespace', 'k8s.io', 'images'];
    const names = (await this.#ctr(...images, 'list', '--quiet')).split('\n');
    await this.#ctr(...images, 'remove', ...names.filter((name) => name.startsWith(repository)));
  }

  get #socket(): string {
    return join(this.#folder, 'containerd.sock');
  }

  /** A command in the node's network. Not `ip netns exec`, which hides /sys/fs/cgroup. */
  get #inside() {
    return ['nsenter', `--net=/run/netns/${this.#namespace}`] as const;
  }

  get #group(): string {
    return this.#namespace;
  }

  /** The bridge's end of the link to the node. */
  get #port(): string {
    return `port${this.#number}`;
  }

  #rules(from: 'api' | 'pods'): string[] {
    const { nodes, pods } = this.#network;
    if (from === 'api') {
      return [
        `OUTPUT -d ${nodes}.1 -p tcp --dport 6443 -j DROP`,
        `INPUT -s ${nodes}.1 -p tcp --sport 6443 -j DROP`,
      ];
    }
    return ['-d', '-s'].map(
      (side) => `FORWARD ${side} ${pods}.0.0/16 ! ${side === '-d' ? '-o' : '-i'} pods0 -j DROP`,
    );
  }

  async #iptables(verb: string, rule: string): Promise<void> {
    const [chain = '', ...rest] = rule.split(' ');
    await run(...this.#inside, 'iptables', '--wait', verb, chain, ...rest);
  }

  #ctr(...args: string[]): Promise<string> {
    return run(join(this.#network.programs, 'ctr'), '--address', this.#socket, ...args);
  }

  async #connect(): Promise<void> {
    const { bridge, nodes, pods, count } = this.#network;
    const own = this.#namespace;
    await ip(`netns add ${own}`);
    await ip(`link add ${this.#port} type veth peer name eth0 netns ${own}`, bridge);
    await ip(`link set ${this.#port} master switch up`, bridge);
    await ip('link set lo up', own);
    await ip(`addr add ${this.address}/24 dev eth0`, own);
    await ip('link set eth0 up', own);
    await ip(`route add default via ${nodes}.1`, own);
    await run('nsenter', `--net=/run/netns/${own}`, 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
    for (let other = 1; other <= count; other += 1) {
      if (other !== this.#number) await ip(`route add ${pods}.${other}.0/24 via ${nodes}.${10 + other}`, own);
    }
    await ip(`route add ${pods}.${this.#number}.0/24 via ${this.address}`);
  }

  async #writeSettings(): Promise<void> {
    const { programs, pods, dns, lostAfter, pki, writeKubeconfig } = this.#network;
    const at = (name: string) => join(this.#folder, name);
    const pair = await pki.issue(this.name, {
      subject: `O=system:nodes, CN=system:node:${this.name}`,
      dns: [this.name],
      ips: [this.address],
    });
    await writeKubeconfig(join(this.name, 'kubeconfig'), pair);
    const json = (name: string, value: unknown) => writeFile(at(name), JSON.stringify(value));
    await json('cni/10-pods.conflist', {
      cniVersion: '1.0.0',
      name: 'pods',
      plugins: [
        {
          type: 'bridge',
          bridge: 'pods0',
          isGateway: true,
          hairpinMode: true,
          ipam: {
            type: 'host-local',
            dataDir: at('ipam'),
            ranges: [[{ subnet: `${pods}.${this.#number}.0/24` }]],
            routes: [{ dst: '0.0.0.0/0' }],
          },
        },
        { type: 'portmap', capabilities: { portMappings: true } },
      ],
    });
    await writeFile(
      at('containerd.toml'),
      `version = 3
root = "${at('containerd')}"
state = "${at('state')}"
[grpc]
  address = "${this.#socket}"
# Otherwise, all nodes of the machine would listen on one socket, and of two that start together, one would fail.
[plugins.'io.containerd.nri.v1.nri']
  disable = true
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "${PAUSE_IMAGE}"
[plugins.'io.containerd.cri.v1.runtime']
  # Without CAP_SYS_RESOURCE, runc fails on a negative value.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["${programs}/cni"]
  conf_dir = "${at('cni')}"
`,
    );
    await json('kubelet.yaml', {
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      address: this.address,
      healthzPort: 0,
      authentication: { x509: { clientCAFile: pki.caFile }, anonymous: { enabled: false } },
      authorization: { mode: 'Webhook' },
      tlsCertFile: pair.certificate,
      tlsPrivateKeyFile: pair.key,
      containerRuntimeEndpoint: `unix://${this.#socket}`,
      podLogsDir: at('pod-logs'),
      cgroupDriver: 'cgroupfs',
      cgroupRoot: `/${this.#group}`,
      failCgroupV1: false,
      failSwapOn: false,
      resolvConf: '',
      clusterDNS: [dns],
      clusterDomain: 'cluster.local',
      nodeStatusUpdateFrequency: '4s',
      // By default, a lease lasts 40 s and a node counts as lost after 50 s, in which the lease is renewed five times.
      nodeLeaseDurationSeconds: Math.ceil((40 / 50) * lostAfter),
      evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
    });
    await json('kube-proxy.yaml', {
      apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
      kind: 'KubeProxyConfiguration',
      mode: 'iptables',
      hostnameOverride: this.name,
      clusterCIDR: `${pods}.0.0/16`,
      clientConnection: { kubeconfig: join(this.#network.folder, 'admin.kubeconfig') },
      conntrack: {
        maxPerCore: 0,
        min: 0,
        tcpEstablishedTimeout: '0s',
        tcpCloseWaitTimeout: '0s',
      },
      healthzBindAddress: '127.0.0.1:10256',
      metricsBindAddress: '127.0.0.1:10249',
    });
  }
}

/** The image of the container that holds a pod's namespaces: it only sleeps. */
export const PAUSE_IMAGE = 'pause.test/pause:1';
