import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { RetryableError } from '../../../base/errors.ts';
import { readMark } from '../../../base/ownership.ts';
import { type ProxyBackend, type ProxyEndpoint, reachableAddress } from '../backend.ts';
import { isStillCurrent } from '../certificates.ts';
import { emissions } from '../emissions.ts';
import { keyOf } from '../file-name.ts';
import { NO_TRUSTED_PEERS } from '../policy.ts';
import { assignProxyPorts } from '../ports.ts';
import { type ConvergerDeps, converge } from './converge.ts';
import { NginxDaemon } from './daemon.ts';
import { writeFiles } from './files.ts';
import { Generations } from './generations.ts';
import { rotateLogs } from './logs.ts';
import { nginxRenderer, type Renderer } from './render.ts';
import { mainSettings, type NginxSettings } from './settings.ts';
import { readNginxSiteFile, type SiteFileHead } from './site-file.ts';
import { SystemNginx } from './system.ts';
import { TEMPLATES } from './templates.ts';

/** A reload with 1,000 sites takes 5 s on two cores. */
const RELOAD_TIMEOUT_MS = 30_000;

interface Started extends Omit<ConvergerDeps, 'main'> {
  /** The main configuration as it must be now. */
  readonly main: () => string;
  readonly renderer: Renderer;
  readonly endpoint: ProxyEndpoint;
}

/** nginx as a proxy: an instance of our own under a private prefix, or with `systemConfig` the system's. */
export function nginxBackend(settings: NginxSettings): ProxyBackend {
  const { prefix } = settings;
  let started: Started | null = null;
  const running = (): Started => {
    if (started === null) throw new RetryableError('nginx isn’t started yet');
    return started;
  };

  return {
    async start() {
      const parts = await prepare(settings);
      await renewCertificates(settings, parts.generations);
      try {
        await converge({ ...parts, main: parts.main() }, []);
      } catch (error) {
        // The system's nginx may be down or not include the tree yet. Each site reports that when it is applied.
        if (settings.systemConfig === undefined || !(error instanceof RetryableError)) throw error;
      }
      await parts.daemon.adopt();
      started = parts;
      return parts.endpoint;
    },

    endpoint: () => running().endpoint,

    async installed() {
      const { generations, daemon, renderer, main } = running();
      const current = await generations.current();
      if (current === null) throw new RetryableError(`${prefix} has no current generation`);
      const served = current.main === main() && (await daemon.servedVersion()) === current.version;
      const describe = async ([name, text]: readonly [string, string]) => {
        const { mark, head } = readNginxSiteFile(text);
        const intact = served && head?.form === renderer.form && (await areCurrent(settings, head));
        const names = head?.certificates ?? null;
        return { key: keyOf(name), mark, intact, names, path: join(prefix, current.name, 'sites', name) };
      };
      return await Promise.all([...current.files].map(describe));
    },

    async install(changes) {
      const { generations, renderer, main, ...rest } = running();
      const current = await generations.current();
      const files = await writeFiles(changes, { ...settings, renderer, current });
      const asked = files.flatMap((file) => (file.status === 'fulfilled' && file.value ? [file.value] : []));
      const { changed, refused } = await converge({ generations, ...rest, main: main() }, asked);
      return files.map((file) => {
        if (file.status === 'rejected') return file;
        const reason = file.value === null ? undefined : refused.get(file.value);
        if (reason !== undefined) return { status: 'rejected', reason };
        return { status: 'fulfilled', value: { changed } };
      });
    },

    events: (signal) => emissions(running().daemon, 'lost', signal),

    async upkeep() {
      const { generations, daemon } = running();
      const files = [...((await generations.current())?.files.keys() ?? [])];
      const sites = new Set(files.map((name) => keyOf(name).split('/')[0] ?? ''));
      const kept = { directory: join(prefix, 'logs'), sites, now: settings.now?.() ?? Date.now() };
      if (await rotateLogs(kept)) await daemon.reread();
    },

    async close() {
      started?.daemon.release();
    },
  };
}

async function prepare(settings: NginxSettings): Promise<Started> {
  const {
    bin,
    prefix,
    listen,
    httpPort,
    tlsPort,
    identity,
    systemConfig,
    reloadTimeoutMs: timeoutMs = RELOAD_TIMEOUT_MS,
  } = settings;
  await mkdir(prefix, { recursive: true, mode: 0o700 });
  const wanted = { httpPort, tlsPort, statusPort: 0 };
  const ports = await assignProxyPorts(join(prefix, 'ports.json'), listen, wanted);
  const renderer = nginxRenderer(TEMPLATES, mainSettings(settings, ports));
  const at = { bin, prefix, statusPort: ports.statusPort, timeoutMs };
  const daemon =
    systemConfig === undefined ? new NginxDaemon(at) : new SystemNginx({ ...at, config: systemConfig });
  await daemon.prepare();
  return {
    renderer,
    daemon,
    generations: new Generations(prefix, renderer),
    main: () => renderer.main(settings.trusted?.() ?? NO_TRUSTED_PEERS),
    isOurs: (text) => readMark(identity, readNginxSiteFile(text).mark).owner.kind === 'ours',
    endpoint: { ...ports, address: reachableAddress(listen) },
  };
}

/**
 * Requests every certificate in use, so that sources renew those that are due. A failure is reported when the site is
 * applied; a renewed certificate shows as drift, and the next pass reloads it.
 */
async function renewCertificates({ certificates }: NginxSettings, generations: Generations): Promise<void> {
  const files = (await generations.current())?.files ?? new Map<string, string>();
  const used = [...files.values()].flatMap((text) => readNginxSiteFile(text).head?.certificates ?? []);
  await Promise.allSettled(used.map(({ host, tls }) => certificates.pathsFor(host, tls)));
}

async function areCurrent({ certificates }: NginxSettings, head: SiteFileHead): Promise<boolean> {
  const current = await Promise.all(head.certificates.map((used) => isStillCurrent(certificates, used)));
  return current.every(Boolean);
}
