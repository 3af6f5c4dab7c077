import { readFile } from 'node:fs/promises';
import { writeDurably } from '../../base/durable.ts';
import { type PolicyRefusal, policyRefusals } from '../report/container-logs.ts';
import type { ReadLine } from './read-line.ts';

const DAY_MS = 86_400_000;
/** For how many days a refusal is reported: management may be down for a part of them. */
const KEPT_DAYS = 7;
/** The most refusals of one site in a day. */
const MOST_OF_SITE = 20;

/** What the policy scripts refused: once a day for each site, template and permission. */
export class Refusals {
  readonly #file: string;
  #all = new Map<string, PolicyRefusal>();
  #isNew = false;

  constructor(file: string) {
    this.#file = file;
  }

  async read(): Promise<void> {
    const text = await readFile(this.#file, 'utf8').catch(() => null);
    if (text === null) return;
    const found = policyRefusals.safeParse(parseJson(text)).data?.refusals ?? [];
    this.#all = new Map(found.map((one) => [keyOf(one), one]));
  }

  note(
    site: string,
    { time, permission, name }: Pick<ReadLine, 'permission' | 'name'> & { readonly time: string },
  ): void {
    if (permission === null) return;
    const refusal = { site, day: time.slice(0, 10), permission, name, at: time };
    const key = keyOf(refusal);
    if (this.#all.has(key)) return;
    const own = [...this.#all.values()].filter((one) => one.site === site && one.day === refusal.day);
    if (own.length >= MOST_OF_SITE) return;
    this.#all.set(key, refusal);
    this.#isNew = true;
  }

  forget(site: string, until = Number.MAX_SAFE_INTEGER): void {
    for (const [key, one] of this.#all) {
      if (one.site === site && Date.parse(one.at) <= until) this.#isNew = this.#all.delete(key);
    }
  }

  /** Drops what is too old. */
  prune(now: number): void {
    for (const [key, { at }] of this.#all) {
      if (Date.parse(at) < now - KEPT_DAYS * DAY_MS) this.#isNew = this.#all.delete(key);
    }
  }

  list(): PolicyRefusal[] {
    return [...this.#all.values()];
  }

  async save(): Promise<void> {
    if (!this.#isNew) return;
    this.#isNew = false;
    await writeDurably(this.#file, JSON.stringify({ refusals: this.list() }));
  }
}

function keyOf({ site, day, permission, name }: PolicyRefusal): string {
  return `${site} ${day} ${permission} ${name ?? ''}`;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
