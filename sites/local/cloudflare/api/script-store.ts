import { createHash, randomUUID } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import {
  type DeploymentInput,
  type ScriptSettings,
  type StoredVersion,
  scriptSettings,
  storedDeployment,
  storedVersion,
} from './worker-schemas.ts';
import type { WorkerState } from './worker-state.ts';

/** The source of a version that was not uploaded. */
const EMBEDDED = 'embedded';

const scriptRow = z.object({ name: z.string(), settings: z.string(), created_on: z.string() });
const versionRow = z.object({ id: z.string(), number: z.number(), created_on: z.string(), body: z.string() });
const deploymentRow = z.object({ id: z.string(), created_on: z.string(), body: z.string() });
const lastNumber = z.object({ number: z.number().nullable() });

export interface Version extends StoredVersion {
  readonly id: string;
  readonly number: number;
  readonly created_on: string;
}

/** Worker scripts with their versions and deployments. Their code isn't run: the edge runs its own bundle. */
export function scriptStore(db: DatabaseSync, now: () => Date) {
  const date = () => now().toISOString();
  const parseVersion = (row: unknown): Version => {
    const { body, ...rest } = versionRow.parse(row);
    return { ...storedVersion.parse(JSON.parse(body)), ...rest };
  };
  const parseDeployment = (row: unknown) => {
    const { body, ...rest } = deploymentRow.parse(row);
    return { ...rest, ...storedDeployment.parse(JSON.parse(body)) };
  };

  function names(): string[] {
    return db
      .prepare('SELECT * FROM scripts ORDER BY name')
      .all()
      .map((row) => scriptRow.parse(row).name);
  }

  /** `null`: there is no such script. */
  function find(name: string): { createdOn: string; settings: ScriptSettings } | null {
    const row = db.prepare('SELECT * FROM scripts WHERE name = ?').get(name);
    if (row === undefined) return null;
    const { settings, created_on: createdOn } = scriptRow.parse(row);
    return { createdOn, settings: scriptSettings.parse(JSON.parse(settings)) };
  }

  function save(name: string, settings: ScriptSettings): void {
    db.prepare(
      `INSERT INTO scripts (name, settings, created_on) VALUES (?, ?, ?)
       ON CONFLICT (name) DO UPDATE SET settings = excluded.settings`,
    ).run(name, JSON.stringify(settings), date());
  }

  /** Changes those settings that are given; `undefined` keeps one as it is. */
  function update(name: string, changes: ScriptSettings): void {
    const given = Object.entries(changes).filter(([, value]) => value !== undefined);
    save(name, { ...find(name)?.settings, ...Object.fromEntries(given) });
  }

  /** Newest first. */
  function versions(script: string): Version[] {
    return db
      .prepare('SELECT * FROM versions WHERE script = ? ORDER BY number DESC')
      .all(script)
      .map(parseVersion);
  }

  function addVersion(script: string, version: StoredVersion): Version {
    const row = db.prepare('SELECT max(number) AS number FROM versions WHERE script = ?').get(script);
    const added = { id: randomUUID(), number: (lastNumber.parse(row).number ?? 0) + 1, created_on: date() };
    db.prepare('INSERT INTO versions (id, script, number, created_on, body) VALUES (?, ?, ?, ?, ?)').run(
      added.id,
      script,
      added.number,
      added.created_on,
      JSON.stringify(version),
    );
    return { ...version, ...added };
  }

  /** Newest first: the first one is active. */
  function deployments(script: string) {
    return db
      .prepare('SELECT * FROM deployments WHERE script = ? ORDER BY number DESC')
      .all(script)
      .map(parseDeployment);
  }

  function deploy(script: string, deployment: DeploymentInput, source: string) {
    const id = randomUUID();
    db.prepare('INSERT INTO deployments (id, script, created_on, body) VALUES (?, ?, ?, ?)').run(
      id,
      script,
      date(),
      JSON.stringify({ ...deployment, source }),
    );
    return parseDeployment(db.prepare('SELECT * FROM deployments WHERE id = ?').get(id));
  }

  function remove(script: string): void {
    for (const [table, column] of [
      ['deployments', 'script'],
      ['versions', 'script'],
      ['scripts', 'name'],
    ]) {
      db.prepare(`DELETE FROM ${table} WHERE ${column} = ?`).run(script);
    }
  }

  /** Makes this state a script's newest version and its settings, unless its newest version was uploaded. */
  function embed(script: string, { bindings, compatibilityDate, settings }: WorkerState): void {
    const [newest] = versions(script);
    if (newest !== undefined && newest.source !== EMBEDDED) return;
    save(script, scriptSettings.parse(settings));
    const version: StoredVersion = {
      bindings: [...bindings],
      ...(compatibilityDate === undefined ? {} : { compatibility_date: compatibilityDate }),
      main: null,
      etag: createHash('sha256').update(JSON.stringify({ bindings, compatibilityDate })).digest('hex'),
      size: 0,
      source: EMBEDDED,
    };
    if (newest?.etag === version.etag) return;
    const { id } = addVersion(script, version);
    deploy(script, { strategy: 'percentage', versions: [{ version_id: id, percentage: 100 }] }, EMBEDDED);
  }

  return { embed, names, find, update, versions, addVersion, deployments, deploy, remove };
}

export type ScriptStore = ReturnType<typeof scriptStore>;
