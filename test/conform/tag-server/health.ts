import { strictEqual } from 'node:assert/strict';
import type { Behaviour } from '../behaviour.ts';
import { ask } from './ask.ts';
import type { TagServerTarget } from './target.ts';

const SOURCE = 'Tag server image, Health';
const PATHS = ['/healthz', '/healthy', '/any/prefix/healthy?x=1', '/gtm/healthz'] as const;

const both = ({ tagging, preview }: TagServerTarget): readonly [role: string, url: string][] => [
  ['processing', tagging],
  ['preview', preview],
];

/** A row: what a header (or the query) asks for, and the status of each role. */
interface Limit {
  readonly header?: string;
  readonly query?: string;
  readonly processing: number;
  readonly preview: number;
}

/** Longer than any process has run, and longer than the time since 1970. */
const AGES = 9e15;

const LIMITS: readonly Limit[] = [
  { header: `server_start_millis=${AGES}`, processing: 200, preview: 200 },
  { header: 'server_start_millis=0', processing: 500, preview: 500 },
  { header: `container_refresh_millis=${AGES}`, processing: 200, preview: 200 },
  { header: 'container_refresh_millis=0', processing: 500, preview: 500 },
  { header: 'container_refresh_millis=600000', processing: 200, preview: 500 },
  { header: `server_start_millis=${AGES},container_refresh_millis=0`, processing: 200, preview: 200 },
  { header: `container_refresh_millis=0,server_start_millis=${AGES}`, processing: 500, preview: 500 },
  { header: 'server_start_millis=soon', processing: 500, preview: 500 },
  { header: 'server_start_millis', processing: 500, preview: 500 },
  { header: 'unknown_millis=0', processing: 200, preview: 200 },
  { query: 'servertype=serverjs', processing: 200, preview: 200 },
  { query: 'servertype=other', processing: 500, preview: 500 },
  { query: 'servertype=other', header: `server_start_millis=${AGES}`, processing: 500, preview: 500 },
];

export const healthBehaviours: readonly Behaviour<TagServerTarget>[] = [
  {
    name: 'answers health checks under any prefix, in both roles',
    source: SOURCE,
    async check(target) {
      for (const [role, url] of both(target)) {
        for (const path of PATHS) {
          const { status, headers, text } = await ask(url, path);
          strictEqual(status, 200, `${role} ${path}`);
          strictEqual(text, 'ok', `${role} ${path}`);
          strictEqual(headers['content-type'], 'text/plain', `${role} ${path}`);
        }
      }
    },
  },
  {
    name: 'answers health checks by GET only',
    source: SOURCE,
    async check({ tagging, preview }) {
      for (const method of ['HEAD', 'POST', 'OPTIONS'] as const) {
        strictEqual((await ask(tagging, '/healthz', { method })).status, 400, `processing ${method}`);
        strictEqual((await ask(preview, '/healthz', { method })).status, 404, `preview ${method}`);
      }
    },
  },
  ...LIMITS.map(
    ({ header, query, ...expected }): Behaviour<TagServerTarget> => ({
      name: `answers ${expected.processing} (preview: ${expected.preview}) to a health check with ${[header, query].filter(Boolean).join(' and ')}`,
      source: SOURCE,
      async check(target) {
        const headers = header === undefined ? {} : { 'x-sgtm-healthz': header };
        const path = query === undefined ? '/healthz' : `/healthz?${query}`;
        strictEqual((await ask(target.tagging, path, { headers })).status, expected.processing, 'processing');
        strictEqual((await ask(target.preview, path, { headers })).status, expected.preview, 'preview');
      },
    }),
  ),
];
