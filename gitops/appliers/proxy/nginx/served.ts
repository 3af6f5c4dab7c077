import { setTimeout as wait } from 'node:timers/promises';
import { contentHash } from '../../../../base/ownership.ts';
import type { NginxDaemon } from './daemon.ts';
import type { Generation } from './generation.ts';
import type { Generations } from './generations.ts';

const POLL_MS = 100;
/** A busy machine, or a reload of many sites, can delay an answer. */
const ANSWER_MS = 2_000;

interface ServedDeps {
  readonly generations: Generations;
  readonly daemon: NginxDaemon;
  /** The main configuration as it must be now. */
  readonly main: string;
  /** True while nginx is being made to serve another generation. */
  isChanging(): boolean;
}

/** True if nginx serves this text of the file. `null`: not known yet, because a reload is in flight. */
type IsServed = (name: string, text: string) => boolean | null;

interface Served {
  readonly current: Generation | null;
  readonly isServed: IsServed;
  /** True if nginx serves the current generation, whatever its main configuration is. */
  readonly isCurrentServed: boolean;
}

/**
 * Compares the current generation with what nginx serves, file by file. During a reload nginx still serves the previous
 * generation; files that are equal in both count as served. If nginx doesn't answer for a while, no file counts as
 * served.
 */
export async function whatIsServed(deps: ServedDeps): Promise<Served> {
  const { generations, main, isChanging } = deps;
  let isInFlight = isChanging();
  for (;;) {
    const current = await generations.current();
    if (current === null) return { current, isServed: () => false, isCurrentServed: false };
    const version = await answer(deps);
    isInFlight ||= isChanging();
    const served =
      version === current.version ? current : version === null ? null : await generations.ofVersion(version);
    // A change has ended meanwhile: read the current generation again.
    if (served !== current && (await generations.current())?.name !== current.name) continue;
    const isMain = served?.mainHash === contentHash(main);
    const isServed: IsServed = (name, text) =>
      isMain && (served === current || served?.files.get(name) === text) ? true : isInFlight ? null : false;
    return { current, isServed, isCurrentServed: served === current };
  }

  async function answer({ daemon }: ServedDeps): Promise<string | null> {
    const deadline = performance.now() + ANSWER_MS;
    for (;;) {
      const version = await daemon.servedVersion();
      if (version !== null || isChanging() || !(await daemon.isRunning())) return version;
      if (performance.now() >= deadline) return null;
      await wait(POLL_MS);
    }
  }
}
