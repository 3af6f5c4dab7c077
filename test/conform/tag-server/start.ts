import { ok, strictEqual } from 'node:assert/strict';
import type { Behaviour } from '../behaviour.ts';
import { ask } from './ask.ts';
import type { TagServerTarget } from './target.ts';

const CONFIG = 'Tag server image, Container configuration';
const START = 'Tag server image, Start and run';

const encode = (query: string): string => Buffer.from(query).toString('base64');

function queryOf({ id, env, auth }: TagServerTarget['config']): string {
  return new URLSearchParams({ id, env, auth }).toString();
}

/** The start must fail, and the output must say why. The configuration is read before anything else, in both roles. */
async function refuses({ startWith }: TagServerTarget, config: string | null): Promise<void> {
  const started = await startWith(config === null ? {} : { CONTAINER_CONFIG: config });
  if (started.listens) await started.stop();
  ok(!started.listens, 'it started');
  ok(started.code !== 0, 'it ended as if nothing were wrong');
  ok(/container config/i.test(started.output), `it doesn't say why: ${started.output}`);
}

/** The base64 of the query with one more parameter, which is lengthened until the base64 matches the pattern. */
function encodedLike(query: string, pattern: RegExp): string {
  for (let text = `${query}&z=`; ; text += '~') if (pattern.test(encode(text))) return encode(text);
}

export const startBehaviours: readonly Behaviour<TagServerTarget>[] = [
  {
    name: 'does not start without CONTAINER_CONFIG',
    source: CONFIG,
    check: (target) => refuses(target, null),
  },
  {
    name: 'does not start with a CONTAINER_CONFIG without its padding',
    source: CONFIG,
    check: (target) => refuses(target, encodedLike(queryOf(target.config), /=$/).replace(/=+$/, '')),
  },
  {
    name: 'does not start with a CONTAINER_CONFIG that has whitespace',
    source: CONFIG,
    check: (target) => refuses(target, `${encode(queryOf(target.config))}\n`),
  },
  {
    name: 'does not start with a CONTAINER_CONFIG in the base64url alphabet',
    source: CONFIG,
    check: (target) =>
      refuses(target, encodedLike(queryOf(target.config), /[+/]/).replaceAll('+', '-').replaceAll('/', '_')),
  },
  ...(['id', 'env', 'auth'] as const).flatMap((name): Behaviour<TagServerTarget>[] => [
    {
      name: `does not start without ${name}`,
      source: CONFIG,
      check(target) {
        const query = new URLSearchParams({ ...target.config });
        query.delete(name);
        return refuses(target, encode(query.toString()));
      },
    },
    {
      name: `does not start with ${name} twice`,
      source: CONFIG,
      check: (target) => refuses(target, encode(`${queryOf(target.config)}&${name}=x`)),
    },
    {
      name: `does not start with an empty ${name}`,
      source: CONFIG,
      check: (target) =>
        refuses(target, encode(new URLSearchParams({ ...target.config, [name]: '' }).toString())),
    },
  ]),
  {
    name: 'takes further parameters of CONTAINER_CONFIG',
    source: CONFIG,
    async check({ config, startWith }) {
      const started = await startWith({
        CONTAINER_CONFIG: encode(`${queryOf(config)}&cd=a`),
        RUN_AS_PREVIEW_SERVER: 'true',
      });
      ok(started.listens, 'it ended');
      await started.stop();
    },
  },
  {
    name: 'does not start in the processing role with an auth that Google refuses',
    source: START,
    async check({ config, startWith }) {
      const started = await startWith({ CONTAINER_CONFIG: encode(queryOf({ ...config, auth: 'bad' })) });
      if (started.listens) await started.stop();
      ok(!started.listens, 'it started');
      ok(/server\.js/.test(started.output), `it doesn't name server.js: ${started.output}`);
      ok(/\b4\d\d\b/.test(started.output), `it doesn't say Google's status: ${started.output}`);
    },
  },
  {
    name: 'is healthy in the preview role with an auth that Google refuses',
    source: START,
    async check({ config, startWith }) {
      const started = await startWith({
        CONTAINER_CONFIG: encode(queryOf({ ...config, auth: 'bad' })),
        RUN_AS_PREVIEW_SERVER: 'true',
      });
      ok(started.listens, 'it ended');
      try {
        strictEqual((await ask(started.url, '/healthz')).status, 200);
      } finally {
        await started.stop();
      }
    },
  },
  {
    name: 'does not start with a PREVIEW_SERVER_URL over plain HTTP',
    source: CONFIG,
    async check({ config, startWith }) {
      const started = await startWith({
        CONTAINER_CONFIG: encode(queryOf(config)),
        PREVIEW_SERVER_URL: 'http://preview.example',
      });
      if (started.listens) await started.stop();
      ok(!started.listens, 'it started');
    },
  },
  {
    name: 'starts in the preview role with a PREVIEW_SERVER_URL over plain HTTP',
    source: CONFIG,
    async check({ config, startWith }) {
      const started = await startWith({
        CONTAINER_CONFIG: encode(queryOf(config)),
        PREVIEW_SERVER_URL: 'http://preview.example',
        RUN_AS_PREVIEW_SERVER: 'true',
      });
      ok(started.listens, 'it ended');
      await started.stop();
    },
  },
];
