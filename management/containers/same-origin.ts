import { sameOriginPath } from '../../sites/manifest/same-origin.ts';
import type { Manifest, ManifestInput } from '../../sites/manifest/schema.ts';
import { ManagementProblem } from '../http/errors.ts';
import { forwarderToken, forwarderTokenHash } from '../view/forwarder-token.ts';
import { type Draw, drawCharacter, drawNumber } from './names/draw.ts';

/**
 * The most days for which the old token is accepted after a rotation: enough to change a server's configuration, but
 * not so many that it is a second token.
 */
const MAX_GRACE_DAYS = 90;
const DAY_MS = 86_400_000;

type SameOrigin = NonNullable<Manifest['domains'][number]['sameOrigin']>;

/** A letter first, so that the path reads as a word. Without letters and digits that are easily confused. */
const LETTERS = 'abcdefghjkmnpqrstuvwxyz';
const ALPHABET = `${LETTERS}23456789`;
const [SHORTEST, LONGEST] = [6, 12];

/** A path that the manifest accepts: no common blocking list has it. */
export function newPath(draw: Draw): string {
  const length = SHORTEST + (drawNumber(draw) % (LONGEST - SHORTEST + 1));
  const rest = Array.from({ length: length - 1 }, () => drawCharacter(draw, ALPHABET)).join('');
  const path = `/${drawCharacter(draw, LETTERS)}${rest}`;
  return sameOriginPath.safeParse(path).success ? path : newPath(draw);
}

/**
 * Sets a domain's same origin, or takes it away (`null`). Without a path, the domain keeps the path that it has. The
 * generation of a new forwarder is one of 2^48, so that none is used twice, even if the domain had no forwarder in
 * between. `key` is the installation's, which makes tokens.
 */
export function withSameOrigin(
  current: ManifestInput,
  {
    domain,
    sameOrigin,
  }: { readonly domain: string; readonly sameOrigin: { path?: string | undefined } | null },
  { key, draw }: { readonly key: string | null; readonly draw: Draw },
): ManifestInput {
  const domains = current.domains.map((entry) => {
    if (entry.domain !== domain) return entry;
    const { sameOrigin: before, ...rest } = entry;
    if (sameOrigin === null) return rest;
    const generation = drawNumber(draw) + 1;
    const forwarder = before?.forwarder ?? {
      generation,
      tokenHash: hashOf(key, { container: current.container, domain, generation }),
    };
    return { ...rest, sameOrigin: { path: sameOrigin.path ?? before?.path ?? newPath(draw), forwarder } };
  });
  return { ...current, domains };
}

/**
 * Gives the domain's forwarder the token of the next generation. The old token is accepted until `until`. If that time
 * has passed, neither the old token nor an even older one is accepted any more. Throws if `until` is too far ahead, or
 * if it is ahead while an even older token is still accepted.
 */
export function rotateForwarderToken(
  current: Manifest,
  { domain, until }: { readonly domain: string; readonly until: Date },
  { key, now }: { readonly key: string | null; readonly now: Date },
): ManifestInput {
  if (until.getTime() > now.getTime() + MAX_GRACE_DAYS * DAY_MS) {
    throw new ManagementProblem('invalid_request', {
      detail: `the old token counts until graceUntil, which must be at most ${MAX_GRACE_DAYS} days ahead`,
    });
  }
  const entry = current.domains.find((one) => one.domain === domain);
  if (entry === undefined) throw new ManagementProblem('unknown_domain');
  const { sameOrigin } = entry;
  if (sameOrigin === undefined) {
    throw new ManagementProblem('unknown_domain', {
      detail: `${domain} has no same-origin path; set one first, by POST …/domains with sameOrigin`,
    });
  }
  const forwarder = nextForwarder(sameOrigin.forwarder, { until, now }, (generation) =>
    hashOf(key, { container: current.container, domain, generation }),
  );
  const rotated = { ...entry, sameOrigin: { ...sameOrigin, forwarder } };
  return { ...current, domains: current.domains.map((one) => (one === entry ? rotated : one)) };
}

function nextForwarder(
  { generation, tokenHash, previous }: SameOrigin['forwarder'],
  { until, now }: { readonly until: Date; readonly now: Date },
  hashOfGeneration: (generation: number) => string,
): SameOrigin['forwarder'] {
  const next = { generation: generation + 1, tokenHash: hashOfGeneration(generation + 1) };
  if (until <= now) return next;
  if (previous !== undefined && new Date(previous.until) > now) {
    throw new ManagementProblem('too_many_forwarder_tokens', {
      detail: `an older token is accepted until ${previous.until}; wait until then, or send a graceUntil in the past to accept only the new one`,
    });
  }
  return { ...next, previous: { tokenHash, until: until.toISOString() } };
}

function hashOf(key: string | null, of: Parameters<typeof forwarderToken>[1]): string {
  if (key === null) throw new ManagementProblem('no_forwarder_key');
  return forwarderTokenHash(forwarderToken(key, of));
}
