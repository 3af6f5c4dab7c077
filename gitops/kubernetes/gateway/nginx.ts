import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { limit } from '../../../base/limit.ts';
import { contentHash } from '../../../base/ownership.ts';
import { type ConvergerDeps, converge } from '../../appliers/proxy/nginx/converge.ts';
import { NginxDaemon } from '../../appliers/proxy/nginx/daemon.ts';
import { Generations } from '../../appliers/proxy/nginx/generations.ts';
import { http2Of } from '../../appliers/proxy/nginx/http2.ts';
import type { FileChange } from '../../appliers/proxy/nginx/isolate.ts';
import { rotateLogs } from '../../appliers/proxy/nginx/logs.ts';
import { endNginx } from '../../appliers/proxy/nginx/process.ts';
import { type MainSettings, mainSchema, plain } from '../../appliers/proxy/nginx/quote.ts';
import { nginxRenderer, type Renderer } from '../../appliers/proxy/nginx/render.ts';
import type { NginxSettings } from '../../appliers/proxy/nginx/settings.ts';
import { TEMPLATES } from '../../appliers/proxy/nginx/templates.ts';
import type { InstanceDocument } from '../delivery/documents.ts';
import { PairFiles } from './certificates.ts';
import type { Configuration, ServerFile } from './configuration.ts';
import { NameTable } from './names.ts';
import { ZONE } from './resolver.ts';

/** The first line of each file of ours. A file without it is not ours. */
const OURS = '# Written by Tagyard’s gateway; edits are overwritten.\n';
/** A reload with 200 custom domains takes a second on two cores. */
const RELOAD_TIMEOUT_MS = 30_000;

export interface GatewayNginxSettings
  extends Pick<
    NginxSettings,
    | ('bin' | 'listen' | 'httpPort' | 'tlsPort' | 'limits' | 'ca')
    | ('workerProcesses' | 'logBytes' | 'shutdownSeconds')
  > {
  /** The folder of generations, certificates, names and logs. */
  readonly directory: string;
  /** Where pods read policy scripts, over TLS. */
  readonly policyPort: number;
  /** This port and `resolverPort` are on 127.0.0.1. */
  readonly statusPort: number;
  readonly resolverPort: number;
  /** See `MainSettings`. */
  readonly frontRanges: readonly string[] | null;
}

/** What `serve` has changed, and what nginx refuses. */
interface ServedOutcome {
  /** True if nginx was started or reloaded. */
  readonly reloaded: boolean;
  /** By name of the Secret: why its file can't be rendered or nginx refuses it; the previous one stays in service. */
  readonly refused: ReadonlyMap<string, string>;
}

/** The gateway's nginx with its files. Calls of `serve` run one after another. */
export class GatewayNginx {
  readonly daemon: NginxDaemon;
  readonly #settings: GatewayNginxSettings;
  readonly #names: NameTable;
  readonly #pairs: PairFiles;
  readonly #exclusive = limit(1);
  /** The hash of what nginx serves; `null`: unknown. */
  #servedHash: string | null = null;
  #http2: MainSettings['http2'] = 'none';
  #refused: ReadonlyMap<string, string> = new Map();
  #sites: ReadonlySet<string> = new Set();

  constructor(settings: GatewayNginxSettings) {
    const { bin, directory, statusPort } = settings;
    this.#settings = settings;
    this.#names = new NameTable(directory);
    this.#pairs = new PairFiles(join(directory, 'tls'));
    this.daemon = new NginxDaemon({
      bin,
      prefix: directory,
      statusPort,
      timeoutMs: RELOAD_TIMEOUT_MS,
    });
  }

  async prepare(): Promise<void> {
    // nginx's workers read the names, and run as another user if the master is root's.
    await mkdir(this.#settings.directory, { recursive: true, mode: 0o711 });
    await this.daemon.prepare();
    this.#http2 = await http2Of(this.#settings.bin);
    await this.#names.prepare();
  }

  /**
   * Makes nginx serve the configuration: names at once, by the table, and everything else by a new generation. Throws
   * `RetryableError` if nginx continues to serve the previous generation; then new names may not have a server yet.
   */
  serve(configuration: Configuration): Promise<ServedOutcome> {
    return this.#exclusive(async () => {
      const { instance, targets, files, pairs } = configuration;
      if (instance === null) return { reloaded: false, refused: new Map() };
      await this.#names.write(targets);
      await this.#pairs.write(pairs);
      const reloaded = await this.#converge(instance, files);
      // In place of a refused file, its previous text is served, which may name the files of an older pair.
      if (this.#refused.size === 0) await this.#pairs.retain(pairs);
      this.#sites = new Set(
        [...files.values()].flatMap((file) => (file.kind === 'own' ? [file.spec.site] : [])),
      );
      return { reloaded, refused: this.#refused };
    });
  }

  /** Starts nginx again with this configuration, after it ended unexpectedly. */
  revive(configuration: Configuration): Promise<ServedOutcome> {
    this.#servedHash = null;
    return this.serve(configuration);
  }

  /** Rotates full logs. */
  rotateLogs(now: number): Promise<void> {
    return this.#exclusive(async () => {
      const directory = join(this.#settings.directory, 'logs');
      const { logBytes: maxBytes } = this.#settings;
      const kept = { directory, sites: this.#sites, now, maxBytes, others: ['platform.log'] };
      if (await rotateLogs(kept)) await this.daemon.reopenLogs();
    });
  }

  /** Ends nginx: it takes no new connections, and requests in flight may take up to `graceMs`. */
  async end(graceMs: number): Promise<void> {
    this.daemon.release();
    await this.#exclusive(() => endNginx(this.#settings.directory, graceMs));
  }

  async #converge(instance: InstanceDocument, files: ReadonlyMap<string, ServerFile>): Promise<boolean> {
    const settings = this.#mainSettings(instance);
    const renderer = nginxRenderer(TEMPLATES, settings);
    const main = renderer.main(instance.trusted);
    const refused = new Map<string, string>();
    const texts = new Map<string, string>();
    for (const [name, file] of files) {
      try {
        texts.set(name, OURS + this.#textOf(renderer, file));
      } catch (error) {
        refused.set(file.secret, messageOf(error));
      }
    }
    // Includes files that can't be rendered: the reason may have changed, or they may have disappeared.
    const wanted = contentHash([settings, main, [...texts], [...files.keys()], [...refused]]);
    if (this.#servedHash === wanted && (await this.daemon.isRunning())) return false;
    const deps = this.#convergerDeps(renderer, main);
    const current = await deps.generations.current();
    const gone = [...(current?.files.keys() ?? [])].filter((name) => !files.has(name));
    const changes: FileChange[] = [
      ...[...texts].map(([name, text]) => ({ name, text })),
      ...gone.map((name) => ({ name, text: null })),
    ];
    this.#servedHash = null;
    const outcome = await converge(deps, changes);
    for (const [change, error] of outcome.refused) {
      refused.set(files.get(change.name)?.secret ?? change.name, messageOf(error));
    }
    this.#refused = refused;
    this.#servedHash = wanted;
    return outcome.changed;
  }

  #convergerDeps(renderer: Renderer, main: string): ConvergerDeps {
    const { daemon } = this;
    const generations = new Generations(this.#settings.directory, {
      fixed: renderer,
      servedVersion: () => daemon.servedVersion(),
    });
    return { generations, daemon, main, isOurs: (text) => text.startsWith(OURS) };
  }

  #textOf(renderer: Renderer, file: ServerFile): string {
    const paths = file.pair === null ? null : this.#pairs.pathsOf(file.pair);
    return file.kind === 'platform'
      ? renderer.platform(file.names, this.#pairs.pathsOf(file.pair), file.options)
      : renderer.vhosts(file.spec, [paths]);
  }

  #mainSettings({ hopSecret, edge, challengeKey }: InstanceDocument): MainSettings {
    const main = {
      ...this.#settings,
      hopSecret: hopSecret.current,
      previousHopSecret: hopSecret.previous,
      challengeKey,
      edge,
      http2: this.#http2,
      gateway: { ...this.#settings, names: this.#names.folder, zone: ZONE },
    };
    return plain(mainSchema, main, 'the gateway’s settings');
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
