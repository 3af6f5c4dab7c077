import { readFileSync } from 'node:fs';

const text = (name: string) => readFileSync(new URL(`./templates/${name}.hbs`, import.meta.url), 'utf8');

/** The configuration's shape, part of this release: all that varies is validated before it is put in. */
export const TEMPLATES = {
  nginx: text('nginx'),
  version: text('version'),
  containers: text('containers'),
  custom: text('custom'),
  challenge: text('challenge'),
} as const;
export type Templates = typeof TEMPLATES;
