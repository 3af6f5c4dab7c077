import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stage, startStage } from '../support/edge/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
afterAll(() => stage.close());

const told = async (agent: string | undefined, features = { user_agent_headers: true }) => {
  const site = await stage.site({ features });
  stage.upstream.received.length = 0;
  const headers = { 'x-device-type': 'forged', ...(agent === undefined ? {} : { 'user-agent': agent }) };
  await stage.send(site.host, '/g/collect?v=2', { headers });
  const arrived = stage.upstream.received[0]?.headers ?? {};
  return ['type', 'os', 'browser', 'browser-version'].map((name) => arrived[`x-device-${name}`]);
};

const LIKE_GECKO = 'AppleWebKit/537.36 (KHTML, like Gecko)';
test.each([
  [
    'Chrome on Windows',
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${LIKE_GECKO} Chrome/149.0.0.0 Safari/537.36`,
    ['desktop', 'Windows', 'Chrome', '149'],
  ],
  [
    'Edge on Windows',
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${LIKE_GECKO} Chrome/149.0.0.0 Safari/537.36 Edg/149.0.0.0`,
    ['desktop', 'Windows', 'Edge', '149'],
  ],
  [
    'Safari on an iPhone',
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Mobile/15E148 Safari/604.1',
    ['mobile', 'iOS', 'Safari', '26'],
  ],
  [
    'Safari on a Mac',
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15',
    ['desktop', 'macOS', 'Safari', '18'],
  ],
  [
    'Firefox on Linux',
    'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
    ['desktop', 'Linux', 'Firefox', '140'],
  ],
  [
    'Samsung Internet on a phone',
    `Mozilla/5.0 (Linux; Android 10; K) ${LIKE_GECKO} SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36`,
    ['mobile', 'Android', 'Samsung Internet', '28'],
  ],
  [
    'Chrome on an Android tablet',
    `Mozilla/5.0 (Linux; Android 10; K) ${LIKE_GECKO} Chrome/149.0.0.0 Safari/537.36`,
    ['tablet', 'Android', 'Chrome', '149'],
  ],
  ['another program', 'curl/8.5.0', ['desktop', undefined, undefined, undefined]],
])('%s', async (_name, agent, expected) => {
  expect(await told(agent)).toEqual(expected);
});

test('nothing is told without a user agent, or without the feature', async () => {
  const nothing = [undefined, undefined, undefined, undefined];
  expect(await told(undefined)).toEqual(nothing);
  expect(await told('Firefox/140.0', { user_agent_headers: false })).toEqual(nothing);
});
