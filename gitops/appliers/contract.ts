import type { Ownership } from '../base/ownership.ts';
import type { LoadedManifest } from '../manifest/containers.ts';

/** A kind of thing that an applier applies: `dns`, say. */
export type Target = string;

/** What the core must know of a target besides how it is applied. */
export interface Traits {
  readonly target: Target;
  /** All hosts of an instance keep these things in one place, so the new host of a site takes them over there. */
  readonly isShared?: boolean;
  /**
   * Visitors find the site by these things. When a site is removed, they are removed first, and the targets before this
   * one in the order stay until DRAIN_SECONDS have passed.
   */
  readonly drainsOnRemoval?: boolean;
  /** A failed delete doesn't fail the removal of its site; the next pass repeats it. */
  readonly mayOutliveSite?: boolean;
  /** The things' name in the guard against mass removal ("4 of 10 DNS records"); unset: the guard doesn't count them. */
  readonly countedAs?: string;
}

/**
 * A thing that a manifest asks for, as canonical data without secrets in `summary`. `hash` covers all of `spec` (and
 * of what the spec stands for, a secret's plaintext say), so equal hashes mean equal things.
 */
export interface Resource<Spec = unknown> {
  readonly target: Target;
  readonly site: string;
  /** Unique within the target. */
  readonly key: string;
  /** Eight or more hex digits, see `contentHash`. */
  readonly hash: string;
  readonly summary: string;
  /** The manifest says that an unmarked thing of this name may be taken over. */
  readonly adopt: boolean;
  readonly spec: Spec;
}

/** A thing found in the world. `hash` is `null` where it exists but isn't what was once applied (broken, edited, stopped). */
export interface Observed<Ref = unknown> {
  readonly target: Target;
  readonly key: string;
  readonly hash: string | null;
  readonly owner: Ownership;
  /** What the applier needs to update or delete it (an id, a path). */
  readonly ref: Ref;
}

export type ChangeOp = 'create' | 'update' | 'delete';

/** One change, printable and without secrets. */
export interface Change<Spec = unknown, Ref = unknown> {
  readonly target: Target;
  readonly site: string;
  readonly key: string;
  readonly op: ChangeOp;
  readonly summary: string;
  readonly desired?: Resource<Spec>;
  readonly observed?: Observed<Ref>;
  /**
   * Of a removal: git wants the site nowhere any more, by a tombstone or by having no file of it. Without it the site
   * lives on, on another host say, and what its visitors left isn't ours to forget.
   */
  readonly ended?: true;
}

/** A desired thing whose name somebody else holds: zero writes until the manifest says `adopt: true`. */
export interface Conflict {
  readonly target: Target;
  readonly site: string;
  readonly key: string;
  readonly detail: string;
}

export interface Plan<Spec = unknown, Ref = unknown> {
  readonly changes: readonly Change<Spec, Ref>[];
  readonly conflicts: readonly Conflict[];
}

/**
 * A look at some sites only. `keys` are this target's keys that the sites were last known to have; what they want now
 * is in `desired`. More may be answered than was asked for: the reconciler leaves it aside.
 */
export interface Scope {
  readonly sites: ReadonlySet<string>;
  readonly keys: ReadonlySet<string>;
}

/**
 * Turns one kind of desired thing into the world. `desired` and `plan` are pure; `observe` reads only, in bulk,
 * everything that carries our mark plus whatever stands under a desired name (with a `scope`: at least what stands
 * under the desired keys and the scope's); `apply` makes one idempotent change (and may share a batch with the others
 * in flight), throwing `RetryableError` or `TerminalError`.
 */
export interface Applier<Spec = unknown, Ref = unknown> extends Traits {
  desired(manifest: LoadedManifest): readonly Resource<Spec>[];
  /** What `desired` depends on besides the manifest (the date, say): once it is another, the wish is asked for anew. */
  edition?(manifest: LoadedManifest): string;
  observe(
    desired: readonly Resource<Spec>[],
    signal: AbortSignal,
    scope?: Scope,
  ): Promise<readonly Observed<Ref>[]>;
  plan(desired: readonly Resource<Spec>[], observed: readonly Observed<Ref>[]): Plan<Spec, Ref>;
  apply(change: Change<Spec, Ref>, signal: AbortSignal): Promise<void>;
  /** Wakes the loop when the world changes under us (Docker events, a dead child process). */
  events?(signal: AbortSignal): AsyncIterable<void>;
  /** True while it brings up things that later targets are pointed at next: they can wait for more of them. */
  isBringingUp?(): boolean;
  close?(): Promise<void>;
}
