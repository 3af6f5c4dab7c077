import { z } from 'zod';

/** The last file of a backup says what it has. */
export const ABOUT = 'backup.json';
/** The commits, as a bundle of git. */
export const BUNDLE = 'sites.bundle';
/** Rows of a table. */
export const TABLES = 'database/';
/** Files, by their path below the instance's home, or by their whole path. */
export const FILES = 'files/';

export const about = z.object({
  version: z.literal(1),
  release: z.string(),
  at: z.iso.datetime(),
  /** Of an instance of `npm start`, whose files are below its home. */
  isEmbedded: z.boolean(),
  /** The files of settings. */
  settings: z.array(z.string()),
  /** `null`: management doesn't run on the machine. */
  database: z.object({ migration: z.string(), sequences: z.record(z.string(), z.string()) }).nullable(),
  /** The newest commit; `null`: there is none. */
  revision: z.string().nullable(),
});
export type About = z.output<typeof about>;
