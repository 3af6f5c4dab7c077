import { describe, expect, test } from 'vitest';
import { isBot } from '../../../edge/http/bots.ts';

const CHROME =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36';

describe('a bot', () => {
  test.each([
    'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)',
    'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)',
    'facebookexternalhit/1.1',
    'Twitterbot/1.0',
    'curl/8.5.0',
    'python-requests/2.32',
  ])('names itself: %s', (agent) => {
    expect(isBot(agent, undefined)).toBe(true);
  });

  test.each([
    ['Cloudflare has verified it', { verifiedBot: true, score: 50 }, true],
    ['Cloudflare is certain', { verifiedBot: false, score: 1 }, true],
    ['Cloudflare guesses', { verifiedBot: false, score: 2 }, false],
    ['no score was computed', { verifiedBot: false, score: 0 }, false],
    ['there is no judgement', undefined, false],
  ])('is judged by what Cloudflare says: %s, %o: %s', (_name, given, expected) => {
    expect(isBot(CHROME, given)).toBe(expected);
  });

  test.each([
    ['a visitor without a user agent', null],
    ['a visitor with an empty user agent', ''],
    ['a browser', CHROME],
    ['a headless browser', CHROME.replace('Chrome/', 'HeadlessChrome/')],
    [
      'a phone',
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile/15E148',
    ],
    [
      'a phone of the brand Cubot',
      'Mozilla/5.0 (Linux; Android 9; CUBOT_X19) AppleWebKit/537.36 Chrome/120.0 Mobile',
    ],
    ['Node’s own client', 'node'],
    ['a server of the site’s owner', 'shop-backend/2.1'],
  ])('is not %s', (_name, agent) => {
    expect(isBot(agent, undefined)).toBe(false);
  });
});
