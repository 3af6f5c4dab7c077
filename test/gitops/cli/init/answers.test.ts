import { describe, expect, test } from 'vitest';
import { answerAll, faultOf, parseAnswers, parseFlags } from '../../../../gitops/cli/init/answers.ts';
import { QUESTIONS } from '../../../../gitops/cli/init/questions.ts';

const GOOD = {
  EDGE_DOMAIN: 'example.net',
  HOST_ADDRESS: '203.0.113.7',
  HOST_NAME: 'tag-1',
  SITES_REPO: 'git@git.example.net:sites.git',
  CLOUDFLARE_API_TOKEN: 'token',
  CLOUDFLARE_ACCOUNT_ID: '0'.repeat(32),
  CLOUDFLARE_ZONE_ID: '1'.repeat(32),
  EDGE_UPSTREAM: 'https://203.0.113.10',
  ACME_EMAIL: 'ops@example.net',
  DATABASE: 'localhost:5432/tagyard',
  DATABASE_ADMIN_URL: '',
  AUTH_ISSUER: 'https://login.example.net/',
  AUTH_JWKS_URL: 'https://login.example.net/jwks',
  SUPER_ADMINS: '',
  PUBLIC_URL: '',
};
const nobody = async () => null;

test('asks at most 15 questions', () => {
  expect(QUESTIONS.length).toBeLessThanOrEqual(15);
});

describe('a file of answers', () => {
  test('keeps ids that look like numbers as they are', () => {
    const text = `CLOUDFLARE_ZONE_ID: 00000000000000000000000000000012\nCLOUDFLARE_ACCOUNT_ID: 1e100000000000000000000000000000\n`;
    expect(parseAnswers('a.yaml', text)).toMatchObject({
      CLOUDFLARE_ZONE_ID: '00000000000000000000000000000012',
      CLOUDFLARE_ACCOUNT_ID: '1e100000000000000000000000000000',
    });
  });

  test('may be JSON, and names further settings of a daemon', () => {
    const text = JSON.stringify({ HOST_NAME: 'tag-2', provisioner: { LOG_LEVEL: 'warn' } });
    expect(parseAnswers('a.json', text)).toEqual({
      HOST_NAME: 'tag-2',
      provisioner: { LOG_LEVEL: 'warn' },
      management: {},
    });
  });

  test('with an unknown key says which keys there are', () => {
    expect(() => parseAnswers('a.yaml', 'HOST_NAM: tag-2')).toThrow(
      /HOST_NAM.*HOST_NAME.*below provisioner:/s,
    );
  });
});

describe('answers', () => {
  test('come from the first source that has them, without a question', async () => {
    const prompt = async (question: string) => {
      throw new Error(`asked: ${question}`);
    };
    const answers = await answerAll([parseFlags(['HOST_NAME=tag-9', 'SUPER_ADMINS=a=b']), GOOD], prompt);
    expect(answers).toEqual({ ...GOOD, HOST_NAME: 'tag-9', SUPER_ADMINS: 'a=b' });
  });

  test('without a terminal: all faults at once, and how to answer', async () => {
    const { EDGE_DOMAIN: _, ...rest } = GOOD;
    const answering = answerAll([{ ...rest, HOST_ADDRESS: 'here' }], nobody);
    await expect(answering).rejects.toThrow(/--answers.*EDGE_DOMAIN: isn’t answered.*HOST_ADDRESS: /s);
  });

  test('on a terminal: a bad one is asked again, an empty one is the usual one', async () => {
    const { HOST_ADDRESS: _, HOST_NAME: __, ...rest } = GOOD;
    const typed = ['here', '203.0.113.9', ''];
    const answers = await answerAll([rest], async () => typed.shift() ?? null);
    expect(answers).toMatchObject({ HOST_ADDRESS: '203.0.113.9', HOST_NAME: 'tag-1' });
  });

  test.each([
    ['CLOUDFLARE_ZONE_ID', 'example.net', /32 of 0-9 and a-f/],
    ['DATABASE', 'localhost', /localhost:5432\/tagyard/],
    ['DATABASE_ADMIN_URL', 'mysql://x', /postgres:\/\//],
    ['SUPER_ADMINS', 'a\nINFRA_SECRET=b', /one line/],
    ['EDGE_DOMAIN', 'not a domain', /EDGE_DOMAIN/],
  ] as const)('%s=%j is refused', (name, value, message) => {
    expect(faultOf(name, value)).toMatch(message);
    expect(faultOf(name, GOOD[name])).toBeNull();
  });

  test('a flag that is no answer is refused', () => {
    expect(() => parseFlags(['LOG_LEVEL=warn'])).toThrow(/--set LOG_LEVEL/);
    expect(() => parseFlags(['CLOUDFLARE_API_TOKEN=x'])).toThrow(/can read arguments/);
  });
});
