import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KUBERNETES } from '../components.ts';
import { run } from './machine.ts';

/** The folder of the project's Helm chart. */
export const CHART = fileURLToPath(new URL('../../../deploy/chart', import.meta.url));

export const helm = (...args: string[]) => run(join(KUBERNETES, 'helm'), ...args);

/** Helm's flags for values by their names. */
export const valueFlags = (values: object): string[] =>
  Object.entries(values).flatMap(([name, value]) => ['--set-json', `${name}=${JSON.stringify(value)}`]);

/** The chart's objects as Helm renders them for a release `tagyard` in a namespace `tagyard`. */
export const renderedChart = (values: object) =>
  helm('template', 'tagyard', CHART, '--namespace', 'tagyard', ...valueFlags(values));
