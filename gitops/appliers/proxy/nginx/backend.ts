import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { RetryableError } from '../../../../base/errors.ts';
import { limit } from '../../../../base/limit.ts';
import { warner } from '../../../../base/log.ts';
import { contentHash, readMark } from '../../../../base/ownership.ts';
import { type ProxyBackend, type ProxyEndpoint, reachableAddress } from '../backend.ts';
import { isStillCurrent } from '../certificates.ts';
import { emissions } from '../emissions.ts';
import { keyOf } from '../file-name.ts';
import { openGeoDatabase } from '../geo-database.ts';
import { NO_TRUSTED_PEERS } from '../policy.ts';
import { assignProxyPorts } from '../ports.ts';
import { type ConvergerDeps, converge } from './converge.ts';
import { NginxDaemon } from './daemon.ts';
import { writeFiles } from './files.ts';
import { Generations } from './generations.ts';
import { http2Of } from './http2.ts';
import { rotateLogs } from './logs.ts';
import { wholeTree } from './lost-tree.ts';
import { nginxRenderer, type Renderer } from './render.ts';
import { reviveNginx } from './revive.ts';
import { whatIsServed } from './served.ts';
import { mainSettings, type NginxSettings } from './settings.ts';
import { readNginxSiteFile, type SiteFileHead } from './site-file.ts';
import { SystemNginx } from './system.ts';
import { TEMPLATES } from './templates.ts';

/** A reload with 1,000 sites takes 5 s on two cores. */
const RELOAD_TIMEOUT_MS = 30_000;
/** Milliseconds between two checks of the logs' sizes. A site at its limit of requests writes 4 MB in this time. */
const ROTATION_MS = 30_000;

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
  /** The main configuration that was last written or found to be as desired. */
  let writtenMain: string | null = null;
  let lostSince: number | null = null;
  let reviver: { stop(): void } | null = null;
  let rotation: NodeJS.Timeout | undefined;
  const exclusive = limit(1);
  let changing = false;
  let closed = false;
  const isChanging = () => changing;
  const exclusiveChange = <T>(work: () => Promise<T>): Promise<T> =>
    exclusive(async () => {
      changing = true;
      return await work().finally(() => {
        changing = false;
      });
    });
  const running = (): Started => {
    if (started === null) throw new RetryableError('nginx isn’t started yet');
    return started;
  };
  /** Makes nginx serve what it served before, from a complete tree. */
  const restore = () =>
    exclusiveChange(async () => {
      if (closed) return;
      const { main, ...rest } = running();
      const wanted = main();
      await converge({ ...rest, main: wanted }, []);
      writtenMain = wanted;
    });

  /**
   * Rotates full logs. Waits first for a change of the configuration to end, because its reload also opens the logs.
   */
  const rotate = () =>
    exclusive(async () => {
      const { generations, daemon } = running();
      const sites = new Set((await generations.vhostNames()).map((name) => keyOf(name).split('/')[0] ?? ''));
      const { now = () => Date.now(), logBytes: maxBytes } = settings;
      const kept = { directory: join(prefix, 'logs'), sites, now: now(), maxBytes };
      if (await rotateLogs(kept)) await daemon.reopenLogs();
    });
  const warnOnce = warner((message) =>
    settings.log?.warn({}, `the logs of the sites can’t be rotated; the next check tries again: ${message}`),
  );

  return {
    async start() {
      const parts = await prepare(settings);
      try {
        await renewCertificates(settings, parts.generations);
        // If the tree is lost, a running nginx keeps serving until the sites are written anew from git.
        const isLost = (await parts.generations.current()) === null && (await parts.daemon.isRunning());
        if (!isLost) {
          const wanted = parts.main();
          await converge({ ...parts, main: wanted }, []);
          writtenMain = wanted;
        }
      } catch (error) {
        // The system's nginx may be down or not include the tree yet. Each site reports that when it is applied.
        const isReported = settings.systemConfig !== undefined && error instanceof RetryableError;
        if (!isReported && !(await parts.daemon.isRunning())) throw error;
      }
      await parts.daemon.adopt();
      reviver = reviveNginx(parts.daemon, restore);
      started = parts;
      const { rotationMs = ROTATION_MS } = settings;
      rotation = setInterval(() => void rotate().then(() => warnOnce(null), warnOnce), rotationMs).unref();
      return parts.endpoint;
    },

    endpoint: () => running().endpoint,

    async installed() {
      const { generations, daemon, renderer, main } = running();
      // The trees are a cache. A damaged one is written anew first, so that it isn't reported as drift of its sites.
      if ((await generations.current())?.isSound === false && !isChanging()) await restore();
      const served = { generations, daemon, main: main(), isChanging };
      const { current, isServed, isCurrentServed } = await whatIsServed(served);
      if (current === null) return [];
      // The main configuration also changes when Cloudflare's address ranges change.
      const isOwnMain =
        current.mainHash === contentHash(served.main) ||
        (writtenMain !== null && current.mainHash === contentHash(writtenMain));
      const describe = async ([name, text]: readonly [string, string]) => {
        const { mark, head } = readNginxSiteFile(text);
        const isCurrent = head?.form === renderer.form && (await areCurrent(settings, head));
        const names = head?.certificates ?? null;
        const path = join(prefix, current.name, 'sites', name);
        const intact = isCurrent && isServed(name, text) !== false;
        const outdated = !intact && isCurrentServed && isOwnMain && head !== null;
        return { key: keyOf(name), mark, intact, outdated, names, path };
      };
      return await Promise.all([...current.files].map(describe));
    },

    install: (asked, expected = []) =>
      exclusiveChange(async () => {
        const { generations, renderer, main, ...rest } = running();
        const current = await generations.current();
        const isLost = current === null && (await rest.daemon.isRunning());
        const { certificates } = settings;
        lostSince = isLost ? (lostSince ?? Date.now()) : null;
        const changes =
          lostSince === null
            ? asked
            : await wholeTree(asked, expected, { certificates, endpoint: rest.endpoint, lostSince });
        const files = await writeFiles(changes, { ...settings, renderer, current });
        const written = files.flatMap((file) =>
          file.status === 'fulfilled' && file.value ? [file.value] : [],
        );
        const wanted = main();
        const { changed, refused } = await converge({ generations, ...rest, main: wanted }, written);
        writtenMain = wanted;
        return files.slice(0, asked.length).map((file) => {
          if (file.status === 'rejected') return file;
          const reason = file.value === null ? undefined : refused.get(file.value);
          if (reason !== undefined) return { status: 'rejected', reason };
          return { status: 'fulfilled', value: { changed } };
        });
      }),

    async strangers() {
      const { generations, isOurs } = running();
      return (await generations.strangers(isOurs)).map((path) => join(prefix, path));
    },

    events: (signal) => emissions(running().daemon, 'lost', signal),

    async close() {
      reviver?.stop();
      clearInterval(rotation);
      // A start of nginx that is under way must not outlast this call.
      closed = true;
      await exclusive(async () => undefined);
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
  const geo = await openGeoDatabase(settings);
  const renderer = nginxRenderer(
    TEMPLATES,
    mainSettings(settings, ports, { geoModule: geo.module, http2: await http2Of(bin) }),
  );
  const at = { bin, prefix, statusPort: ports.statusPort, timeoutMs };
  const daemon =
    systemConfig === undefined ? new NginxDaemon(at) : new SystemNginx({ ...at, config: systemConfig });
  await daemon.prepare();
  return {
    renderer,
    daemon,
    generations: new Generations(prefix, {
      fixed: renderer,
      servedVersion: () => daemon.servedVersion(),
    }),
    main: () => renderer.main(settings.trusted?.() ?? NO_TRUSTED_PEERS, geo.current()),
    isOurs: (text) => readMark(identity, readNginxSiteFile(text).mark).owner.kind === 'ours',
    endpoint: { ...ports, address: reachableAddress(listen) },
  };
}

/**
 * Requests every certificate in use, so that sources renew those that are due. A failure is reported when the site is
 * applied; after a renewal, the site's file is outdated, and the next pass writes it again.
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
