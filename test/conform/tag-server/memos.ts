import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import type { Behaviour } from '../behaviour.ts';
import { ask } from './ask.ts';
import type { TagServerTarget } from './target.ts';

const SOURCE = 'Tag server image, Preview server';

/** Each check has a session of its own, because memos stay in the server until a poll takes them. */
let sessions = 0;
const newSession = (): string => `c0f0${Date.now().toString(16)}${++sessions}`;

const post = ({ preview, config: { auth } }: TagServerTarget, body: unknown) =>
  ask(preview, `/gtm/post_memo?${new URLSearchParams({ auth_code: auth })}`, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

const poll = ({ preview, config: { id } }: TagServerTarget, sessionId: string) =>
  ask(preview, `/gtm/get_memo?id=${id}`, { headers: { cookie: `gtm_debug=${id}=${sessionId}` } });

/** The memos of an answer of `get_memo`. */
function memosIn(text: string, id: string): unknown {
  ok(text.startsWith(")]}'\n"), `the answer begins with ${text.slice(0, 10)}`);
  const answer: unknown = JSON.parse(text.slice(5));
  ok(typeof answer === 'object' && answer !== null && id in answer, `there is no ${id} in ${text}`);
  return answer[id as keyof typeof answer];
}

export const memoBehaviours: readonly Behaviour<TagServerTarget>[] = [
  {
    name: 'keeps memos for their session',
    source: SOURCE,
    async check(target) {
      const [one, other] = [newSession(), newSession()];
      const posted = await post(target, [
        { sessionId: one, memos: [{ n: 1 }, 'two'] },
        { sessionId: other, memos: [3] },
      ]);
      strictEqual(posted.status, 200);
      const { id } = target.config;
      deepStrictEqual(memosIn((await poll(target, other)).text, id), [3]);
      deepStrictEqual(memosIn((await poll(target, one)).text, id), [{ n: 1 }, 'two']);
    },
  },
  {
    name: 'hands memos to a poll that waits',
    source: SOURCE,
    async check(target) {
      const sessionId = newSession();
      const waiting = poll(target, sessionId);
      const posted = await post(target, [{ sessionId, memos: ['late'] }]);
      strictEqual(posted.status, 200);
      const { status, text } = await waiting;
      strictEqual(status, 200);
      deepStrictEqual(memosIn(text, target.config.id), ['late']);
    },
  },
  {
    name: 'needs the debug cookie for memos',
    source: SOURCE,
    async check({ preview, config: { id } }) {
      strictEqual((await ask(preview, `/gtm/get_memo?id=${id}`)).status, 404, 'without a cookie');
      const foreign = { headers: { cookie: 'gtm_debug=GTM-NOTMINE=abc123' } };
      strictEqual(
        (await ask(preview, `/gtm/get_memo?id=${id}`, foreign)).status,
        404,
        'of another container',
      );
      const own = { headers: { cookie: `gtm_debug=${id}=abc123` } };
      strictEqual((await ask(preview, '/gtm/get_memo', own)).status, 404, 'without an id');
    },
  },
  {
    name: 'takes memos with the container’s auth only',
    source: SOURCE,
    async check({ preview }) {
      const body = JSON.stringify([{ sessionId: 'abc123', memos: [] }]);
      for (const path of ['/gtm/post_memo', '/gtm/post_memo?auth_code=guess']) {
        strictEqual((await ask(preview, path, { method: 'POST', body })).status, 403, path);
      }
    },
  },
  {
    name: 'answers 400 to malformed memos',
    source: SOURCE,
    async check(target) {
      const malformed = [
        '',
        'memo',
        { sessionId: 'abc123', memos: [] },
        [{ memos: [] }],
        [{ sessionId: '', memos: [] }],
        [{ sessionId: 'abc123', memos: 'x' }],
        [null],
      ];
      for (const body of malformed) strictEqual((await post(target, body)).status, 400, JSON.stringify(body));
    },
  },
];
