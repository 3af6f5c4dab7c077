import * as z from 'zod/mini';
import StageWorker from '../../../../edge/stage/worker.ts';
import { definePlugin } from '../../../../plugins/contract.ts';
import { PLUGINS } from '../../../../plugins/index.ts';

const optional = { kind: 'optional', routes: [] } as const;

/** Adds members from a site's options to the answer of /boot. */
const greeting = definePlugin({
  ...optional,
  name: 'greeting',
  flag: 'greeting',
  config: z.object({ text: z._default(z.string(), 'hello') }),
  boot: async ({ settings }, { domain }) => ({ text: settings.text, domain: domain.domain }),
});

/** Returns what JSON can't hold. */
const unserializable = definePlugin({
  ...optional,
  name: 'unserializable',
  flag: 'unserializable',
  config: z.object({}),
  boot: async () => ({ count: 1n }),
});

/** Takes part in the bootstrap and returns nothing. */
const silent = definePlugin({
  ...optional,
  name: 'silent',
  flag: 'silent',
  config: z.object({}),
  async boot(_context, draft) {
    if (draft.record !== null) draft.record.cookies = [];
  },
});

/** Changes the body of every answer, and keeps its headers. */
const rewriter = definePlugin({
  ...optional,
  name: 'rewriter',
  flag: 'rewriter',
  config: z.object({}),
  after: async (response) => new Response((await response.text()) + ' '.repeat(99), response),
});

StageWorker.plugins = [greeting, unserializable, silent, rewriter, ...PLUGINS];

export default StageWorker;
