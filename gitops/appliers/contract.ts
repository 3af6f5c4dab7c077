import type { Ownership } from '../../base/ownership.ts';
import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import type { QuotaFigures } from '../report/quotas.ts';
import type { Reason } from '../report/report.ts';

/** A kind of output, which one applier applies: `dns`, for example. */
export type Target = string;

/** What the core must know of a target besides how it is applied. */
export interface Traits {
  readonly target: Target;
  /** All hosts of an instance keep these objects in one place, so the new host of a site takes them over there. */
  readonly isShared?: boolean;
  /**
   * Visitors find the site by these objects. When a site is removed, they are removed first. The objects of targets
   * that come earlier in the order stay until DRAIN_SECONDS have passed.
   */
  readonly drainsOnRemoval?: boolean;
  /**
   * The target's objects give the site its public names. While one of these names belongs to others, no resource with
   * `needsNames` is created.
   */
  readonly givesNames?: boolean;
  /** A failed delete doesn't fail the removal of its site; the next pass repeats it. */
  readonly mayOutliveSite?: boolean;
  /**
   * The objects' name in the guard against mass removal ("4 of 10 DNS records"); unset: the guard doesn't count them.
   */
  readonly countedAs?: string;
}

/**
 * What a manifest asks of one target, as canonical data. `hash` covers all of `spec`, and the plaintext of secrets that
 * the spec refers to: equal hashes mean equal resources. `summary` contains no secret.
 */
export interface Resource<Spec = unknown> {
  readonly target: Target;
  readonly site: string;
  /** Unique within the target. */
  readonly key: string;
  /** Eight or more hex digits, see `contentHash`. */
  readonly hash: string;
  readonly summary: string;
  /** The manifest allows Tagyard to take over an object with this key that has no mark. */
  readonly adopt: boolean;
  /** Its creation makes the site answer under its public names, so all of them must be free or the site's own. */
  readonly needsNames?: true;
  readonly spec: Spec;
}

/** An object that exists in a target. `hash` is `null` if it differs from what was applied: broken, edited, stopped. */
export interface Observed<Ref = unknown> {
  readonly target: Target;
  readonly key: string;
  readonly hash: string | null;
  readonly owner: Ownership;
  /**
   * Set only if `hash` is `null`. Nothing was changed from outside, so the update is not a repair of drift: a
   * newer release, another setting or a renewed certificate changes what is desired, or the object isn't ready.
   */
  readonly outdated?: true;
  /** What the applier needs to update or delete it: an id, a path. */
  readonly ref: Ref;
  /** What is there, for people, if it differs from what was applied. Contains no secret. */
  readonly found?: string;
}

export type ChangeOp = 'create' | 'update' | 'delete';

/** One change; can be printed, contains no secrets. */
export interface Change<Spec = unknown, Ref = unknown> {
  readonly target: Target;
  readonly site: string;
  readonly key: string;
  readonly op: ChangeOp;
  readonly summary: string;
  readonly desired?: Resource<Spec>;
  readonly observed?: Observed<Ref>;
  /**
   * Set only for a delete, if git no longer has the site on any host (a tombstone, or no file). A delete without it:
   * the site still exists, on another host for example, and its visitors' data must be kept.
   */
  readonly ended?: true;
}

/** A desired resource whose key a foreign object has: it isn't written until the manifest says `adopt: true`. */
export interface Conflict {
  readonly target: Target;
  readonly site: string;
  readonly key: string;
  readonly detail: string;
  /** A public name of the site belongs to others (`Traits.givesNames`). */
  readonly ofName?: true;
}

export interface Plan<Spec = unknown, Ref = unknown> {
  readonly changes: readonly Change<Spec, Ref>[];
  readonly conflicts: readonly Conflict[];
}

/**
 * Limits an observation to some sites. `keys` are the keys of this target that the sites had at the last check; the
 * keys that they want now are in `desired`. The answer may contain more: the core drops what is out of scope.
 */
export interface Scope {
  readonly sites: ReadonlySet<string>;
  readonly keys: ReadonlySet<string>;
}

/** Why sites aren't ready although everything is applied: an operator must change something on the host. */
export interface Shortfall {
  readonly reason: Reason;
  readonly message: string;
}

/** Receives a text for people: what a change waits for now. Empty: it no longer waits for anything unusual. */
export type Progress = (message: string) => void;

/** What one change knows of the run that it belongs to, and where it reports its progress. */
export interface ApplyRun {
  readonly progress?: Progress;
  /** Aborts when a newer revision changes the site. */
  readonly superseded?: AbortSignal;
}

/**
 * Applies the resources of one target.
 * - `desired` and `plan` are pure.
 * - `observe` only reads, in bulk: everything that carries our mark, and everything under a desired key. With a
 *   `scope`, at least everything under the desired keys and the scope's.
 * - `apply` makes one idempotent change, alone or in a batch with others in flight. It throws `RetryableError` or
 *   `TerminalError`. `superseded` aborts when a newer revision changes the site: a change that is waiting then throws
 *   the signal's reason.
 *
 * @example
 * const notes: Applier<string, string> = {
 *   target: 'notes',
 *   desired: ({ site, name, adopt }) =>
 *     [{ target: 'notes', site, key: site, hash: contentHash(name), summary: 'a note', adopt, spec: name }],
 *   observe: async () => await readNotes(),
 *   plan: planResources,
 *   apply: async ({ key, desired }) => await (desired === undefined ? removeNote(key) : writeNote(key, desired.spec)),
 * };
 */
export interface Applier<Spec = unknown, Ref = unknown> extends Traits {
  desired(manifest: LoadedManifest): readonly Resource<Spec>[];
  /**
   * Identifies what `desired` depends on besides the manifest, the date for example: `desired` is cached until it
   * changes.
   */
  edition?(manifest: LoadedManifest): string;
  /**
   * The same applier for one preview of a revision that isn't applied: it assigns nothing that lasts and cleans up
   * nothing. Only `desired`, `edition`, `observe` and `plan` are called. If absent, a preview uses the applier itself.
   */
  preview?(): Applier<Spec, Ref>;
  observe(
    desired: readonly Resource<Spec>[],
    signal: AbortSignal,
    scope?: Scope,
  ): Promise<readonly Observed<Ref>[]>;
  /**
   * The host's objects that serve all of its sites, so that no site's removal deletes them. Only read when the host is
   * given up. If absent, the target has none.
   */
  ofHost?(signal: AbortSignal): Promise<readonly Observed<Ref>[]>;
  plan(desired: readonly Resource<Spec>[], observed: readonly Observed<Ref>[]): Plan<Spec, Ref>;
  apply(change: Change<Spec, Ref>, signal: AbortSignal, run?: ApplyRun): Promise<void>;
  /**
   * An item triggers a check: of one site if it is the site's id, else of all. Something was changed from outside (a
   * Docker event, a dead child process).
   */
  events?(signal: AbortSignal): AsyncIterable<unknown>;
  /** Which of the site's running objects don't serve at the moment, for people; `null`: all do. */
  faultOf?(site: string): string | null;
  /** The keys of the site's servers that serve visitors at the moment. */
  serving?(site: string): readonly string[];
  /** What the host lacks for all sites that use this target, as of the last observation or change; `null`: nothing. */
  shortfall?(): Shortfall | null;
  /** `null`: not observed yet. Without this function, nothing limits the number of the target's objects. */
  quota?(): QuotaFigures | null;
  /** True while it starts objects that later targets will point to. Those targets may wait, to batch more changes. */
  isBringingUp?(): boolean;
  close?(): Promise<void>;
}
