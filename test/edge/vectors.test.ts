import { existsSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cookieValues } from '../../plugins/profile.ts';
import { type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';

/** Test cases of public projects, in a folder beside this project. Each file names its source and licence. */
const vectors = (name: string) => new URL(`../../../shared/vectors/${name}`, import.meta.url);
const absent = !existsSync(vectors('JSONTestSuite_parsing.json'));
if (absent) console.warn('Left out: ../shared/vectors is not here, so no case of the public suites ran.');

function cases<T>(name: string): T[] {
  return absent ? [] : JSON.parse(readFileSync(vectors(name), 'utf8')).cases;
}

describe.skipIf(absent)('JSONTestSuite against POST /boot', () => {
  let stage: Stage;
  let site: StagedSite;
  beforeAll(async () => {
    stage = await startStage();
    site = await stage.site();
  });
  afterAll(() => stage.close());

  interface JsonCase {
    readonly name: string;
    readonly expect: 'n' | 'y' | 'i';
    readonly b64?: string;
    /** Instead of `b64` in long cases: repeated `times` times, then the tail. */
    readonly repeat_b64?: string;
    readonly times?: number;
    readonly tail_b64?: string;
  }

  const octetsOf = ({ b64 = '', repeat_b64 = '', times = 0, tail_b64 = '' }: JsonCase) =>
    Buffer.concat(
      [b64, ...Array<string>(times).fill(repeat_b64), tail_b64].map((part) => Buffer.from(part, 'base64')),
    );

  const post = (body: Buffer) => stage.send(site.host, '/boot', { method: 'POST', body });

  test.each(cases<JsonCase>('JSONTestSuite_parsing.json'))('$name', async (example) => {
    const { expect: verdict } = example;
    const octets = octetsOf(example);
    // Alone, no case is a valid boot request. A body over 64 KiB is refused.
    const bare = await post(octets);
    expect([400, 413]).toContain(bare.status);
    const detail = bare.json.detail === undefined ? 'parsed' : 'refused';
    if (verdict === 'y') expect(detail).toBe('parsed');
    if (verdict === 'n' && bare.status === 400) expect(detail).toBe('refused');
    // The same case as an unknown member of a valid request.
    const [head, tail] = [`{"loader":"${site.loader}","url":"https://${site.domains[0]?.domain}/","x":`, '}'];
    const inside = await post(Buffer.concat([Buffer.from(head), octets, Buffer.from(tail)]));
    expect(inside.status).toBeLessThan(500);
    if (verdict === 'y') expect(inside.status).toBe(200);
  });
});

describe.skipIf(absent)('http-state’s cookie headers', () => {
  interface CookieCase {
    readonly test: string;
    readonly sent: readonly { readonly name: string; readonly value: string }[];
  }

  test.each(cases<CookieCase>('http_state_parser.json').filter(({ sent }) => sent.length > 0))(
    'after $test, the cookie header that a browser sends is parsed correctly',
    ({ sent }) => {
      const header = sent.map(({ name, value }) => `${name}=${value}`).join('; ');
      for (const { name } of sent) {
        const first = sent.find((pair) => pair.name === name);
        expect(cookieValues(header, name)[0]).toBe(first?.value);
      }
      expect(cookieValues(header, '_fpid')).toEqual([]);
    },
  );
});
