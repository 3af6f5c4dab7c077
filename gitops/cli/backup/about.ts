import { z } from 'zod';

/** The last file of a backup says what it has. */
export const ABOUT = 'backup.json';
/** The commits, as a bundle of git. */
export const BUNDLE = 'sites.bundle';
/** Rows of a table. */
export const TABLES = 'database/';
/** Files, by their path below the instance's home, or by their whole path. */
export const FILES = 'files/';

export const versionOfCopy = z.object({
  /** The newest migration of the schema. */
  migration: z.string(),
  /** By sequence, the last number that was given. */
  sequences: z.record(z.string(), z.string()),
});
export type VersionOfCopy = z.output<typeof versionOfCopy>;

export const about = z.object({
  version: z.literal(1),
  release: z.string(),
  at: z.iso.datetime(),
  /** Of an instance of `npm start`, whose files are below its home. */
  isEmbedded: z.boolean(),
  /** The files of settings. */
  settings: z.array(z.string()),
  /** `null`: management doesn't run on the machine. */
  database: versionOfCopy.nullable(),
  /** The newest commit; `null`: there is none. */
  revision: z.string().nullable(),
});
export type About = z.output<typeof about>;
