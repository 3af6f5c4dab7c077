import { deepStrictEqual, match, ok, strictEqual } from 'node:assert/strict';
import type { Behaviour } from '../behaviour.ts';
import { ask } from './ask.ts';
import type { TagServerTarget } from './target.ts';

const SOURCE = 'Tag server image, Preview server';
const PATHS = 'Tag server image, Paths';
const INTERFACE_ORIGIN = 'https://tagmanager.googleusercontent.com';
const USER_INTERFACE = 'https://tagmanager.google.com';
const ATTRIBUTES = 'Path=/; HttpOnly; SameSite=None; Secure';

/** `…/gtm/debug` with the parameters that are given. */
const debugPath = (parameters: Readonly<Record<string, string>>): string =>
  `/gtm/debug?${new URLSearchParams(parameters)}`;

/** Drafts of a container: two environments (`env-1` is the made-up container's own), and a workspace's preview. */
const DRAFTS = ['env-1', 'env-77', 'workspace-preview_12-34'] as const;

function session(id: string, auth: string, preview: string): Record<string, string> {
  return { cookie: `gtm_auth=${id}=${auth}; gtm_debug=${id}=abc123; gtm_preview=${id}=${preview}` };
}

export const previewBehaviours: readonly Behaviour<TagServerTarget>[] = [
  {
    name: 'answers the preflight of Tag Manager’s interface with 204 and credentials, in both roles',
    source: SOURCE,
    async check({ tagging, preview }) {
      for (const url of [tagging, preview]) {
        const { status, headers } = await ask(url, '/gtm/debug', {
          method: 'OPTIONS',
          headers: { origin: INTERFACE_ORIGIN, 'access-control-request-method': 'GET' },
        });
        strictEqual(status, 204);
        strictEqual(headers['access-control-allow-origin'], INTERFACE_ORIGIN);
        strictEqual(headers['access-control-allow-credentials'], 'true');
        strictEqual(headers['access-control-allow-methods'], 'GET');
        strictEqual(headers['access-control-max-age'], '86400');
        for (const name of ['x-gtm-auth', 'x-gtm-preview', 'x-gtm-debug']) {
          ok(headers['access-control-allow-headers']?.includes(name), `${name} is not allowed`);
        }
      }
    },
  },
  {
    name: 'answers 400 to another origin’s preflight on a path that no client claims',
    source: PATHS,
    async check({ tagging }) {
      const headers = { origin: 'https://shop.example', 'access-control-request-method': 'GET' };
      strictEqual((await ask(tagging, '/unclaimed', { method: 'OPTIONS', headers })).status, 400);
    },
  },
  {
    name: 'answers 400 on a path that no client claims',
    source: PATHS,
    async check({ tagging }) {
      strictEqual((await ask(tagging, '/unclaimed')).status, 400);
    },
  },
  {
    name: 'answers 400 under /gtm/ in the processing role without a preview server',
    source: SOURCE,
    async check({ tagging, config: { id, auth, env } }) {
      const path = debugPath({ id, gtm_auth: auth, gtm_preview: `env-${env}` });
      strictEqual((await ask(tagging, path)).status, 400);
    },
  },
  {
    name: 'opens a preview of its own container for any auth and any draft',
    source: SOURCE,
    async check({ preview, config: { id, auth } }) {
      for (const draft of DRAFTS) {
        for (const given of [auth, 'another', 'bad']) {
          const path = debugPath({ id, gtm_auth: given, gtm_preview: draft });
          const { status, headers, cookies, text } = await ask(preview, path);
          strictEqual(status, 200, path);
          match(headers['content-type'] ?? '', /^text\/html/);
          strictEqual(headers['cache-control'], 'no-store');
          ok(!text.includes('Preview failed to load'), path);
          strictEqual(cookies[0], `gtm_auth=${id}=${given}; Max-Age=300; ${ATTRIBUTES}`);
          match(cookies[1] ?? '', new RegExp(`^gtm_debug=${id}=[0-9a-f]+; Max-Age=300; `));
          strictEqual(cookies[2], `gtm_preview=${id}=${draft}; Max-Age=300; ${ATTRIBUTES}`);
        }
      }
    },
  },
  {
    name: 'opens no preview of another container',
    source: SOURCE,
    async check({ preview, config: { auth, env } }) {
      const path = debugPath({ id: 'GTM-NOTMINE', gtm_auth: auth, gtm_preview: `env-${env}` });
      const { status, cookies, text } = await ask(preview, path);
      strictEqual(status, 200);
      ok(text.includes('Preview failed to load'));
      deepStrictEqual(cookies, []);
    },
  },
  {
    name: 'answers 404 to a preview with a missing parameter',
    source: SOURCE,
    async check({ preview, config: { id, auth, env } }) {
      const all = { id, gtm_auth: auth, gtm_preview: `env-${env}` };
      for (const name of Object.keys(all) as (keyof typeof all)[]) {
        const { [name]: _, ...rest } = all;
        strictEqual((await ask(preview, debugPath(rest))).status, 404, `without ${name}`);
      }
      strictEqual((await ask(preview, '/gtm/debug')).status, 404, 'without any');
    },
  },
  {
    name: 'keeps the session and the values of other containers in the debug cookies',
    source: SOURCE,
    async check({ preview, config: { id, auth, env } }) {
      const path = debugPath({ id, gtm_auth: auth, gtm_preview: `env-${env}` });
      const cookie = `gtm_debug=GTM-OTHER=0ther:${id}=abc123; gtm_preview=GTM-OTHER=env-9`;
      const { cookies } = await ask(preview, path, { headers: { cookie } });
      strictEqual(cookies[1], `gtm_debug=GTM-OTHER=0ther:${id}=abc123; Max-Age=300; ${ATTRIBUTES}`);
      strictEqual(cookies[2], `gtm_preview=GTM-OTHER=env-9:${id}=env-${env}; Max-Age=300; ${ATTRIBUTES}`);
    },
  },
  {
    name: 'removes its container from the debug cookies by exit_preview',
    source: SOURCE,
    async check({ preview, config: { id } }) {
      const cookie = `gtm_auth=${id}=x; gtm_debug=GTM-OTHER=0ther:${id}=abc123; gtm_preview=${id}=env-1`;
      const { status, cookies } = await ask(preview, `/gtm/exit_preview?id=${id}`, { headers: { cookie } });
      strictEqual(status, 200);
      match(cookies[0] ?? '', /^gtm_auth=x; expires=Thu, 01 Jan 1970 /);
      strictEqual(cookies[1], `gtm_debug=GTM-OTHER=0ther; Max-Age=300; ${ATTRIBUTES}`);
      match(cookies[2] ?? '', /^gtm_preview=x; expires=Thu, 01 Jan 1970 /);
      strictEqual((await ask(preview, '/gtm/exit_preview')).status, 404, 'without an id');
    },
  },
  {
    name: 'answers /gtm/preview_status of Tag Manager’s interface with the previews in the cookie',
    source: SOURCE,
    async check({ preview }) {
      const { status, headers, text } = await ask(preview, '/gtm/preview_status', {
        headers: { cookie: 'gtm_preview=GTM-A=env-3:GTM-B=env-1' },
      });
      strictEqual(status, 200);
      strictEqual(headers['access-control-allow-origin'], USER_INTERFACE);
      strictEqual(headers['access-control-allow-credentials'], 'true');
      ok(text.startsWith(")]}'\n"), text);
      const expected = {
        preview: [
          ['GTM-A', 'env-3'],
          ['GTM-B', 'env-1'],
        ],
      };
      deepStrictEqual(JSON.parse(text.slice(5)), expected);
    },
  },
  {
    name: 'answers 401 to a debug session without its auth',
    source: SOURCE,
    async check({ tagging, config: { id } }) {
      const sessions = [
        { cookie: `gtm_preview=${id}=env-3` },
        { cookie: `gtm_debug=${id}=abc123` },
        { 'x-gtm-preview': `${id}=env-3` },
        { 'x-gtm-server-preview': Buffer.from('env-3||abc123').toString('base64') },
      ];
      for (const headers of sessions) {
        strictEqual((await ask(tagging, '/unclaimed', { headers })).status, 401, JSON.stringify(headers));
      }
    },
  },
  {
    name: 'ignores the debug session of another container',
    source: SOURCE,
    async check({ tagging }) {
      const headers = { cookie: 'gtm_preview=GTM-NOTMINE=env-3' };
      strictEqual((await ask(tagging, '/unclaimed', { headers })).status, 400);
    },
  },
  {
    name: 'fetches the draft of a debug session, and refuses one whose auth Google refuses',
    source: SOURCE,
    async check({ tagging, config: { id, auth, env } }) {
      const own = session(id, auth, `env-${env}`);
      strictEqual((await ask(tagging, '/unclaimed', { headers: own })).status, 400, 'its own environment');
      const refused = [
        session(id, 'bad', `env-${env}`),
        { 'x-gtm-auth': `${id}=bad`, 'x-gtm-preview': `${id}=env-${env}` },
        { 'x-gtm-server-preview': Buffer.from(`env-${env}|bad|abc123`).toString('base64') },
      ];
      for (const headers of refused) {
        const { status } = await ask(tagging, '/unclaimed', { headers });
        // Google's own status, or 500; 400 would mean that the draft was fetched and has answered.
        ok([403, 404, 500].includes(status), `${status} to ${JSON.stringify(headers)}`);
      }
    },
  },
  {
    name: 'answers 500 to a malformed X-Gtm-Server-Preview',
    source: SOURCE,
    async check({ tagging }) {
      for (const value of ['env-3', Buffer.from('env-3|x').toString('base64')]) {
        const headers = { 'x-gtm-server-preview': value };
        strictEqual((await ask(tagging, '/unclaimed', { headers })).status, 500, value);
      }
    },
  },
  {
    name: 'hands /gtm/debug/ to Google',
    source: SOURCE,
    async check({ preview }) {
      const { text } = await ask(preview, '/gtm/debug/tagyard-conform');
      ok(text !== 'Not Found', 'it isn’t passed on');
    },
  },
  {
    name: 'answers 404 to any other path of the preview role',
    source: SOURCE,
    async check({ preview }) {
      for (const path of ['/', '/gtm', '/gtm/unknown', '/g/collect']) {
        const { status, text } = await ask(preview, path);
        deepStrictEqual([status, text], [404, 'Not Found'], path);
      }
    },
  },
];
