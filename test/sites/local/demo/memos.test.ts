import { expect, test } from 'vitest';
import { buildMemos } from '../../../../sites/local/demo/tag-server/memos.ts';

const memos = () => buildMemos({ longPollSeconds: 3_600, messageExpirySeconds: 3_600 });
const open = new AbortController().signal;

test('a post answers all polls that wait, and the next poll gets at once all that was posted since', async () => {
  const { post, take } = memos();
  const polls = [take('one', open), take('one', open)];
  post('one', ['first']);
  post('one', ['second']);
  post('one', ['third']);
  expect(await Promise.all(polls)).toEqual([['first'], ['first']]);
  expect(await take('one', open)).toEqual(['second', 'third']);
});

test('a poll that begins while another is being answered waits for the next post', async () => {
  const { post, take } = memos();
  const first = take('one', open);
  post('one', ['first']);
  const second = take('one', open);
  expect(await first).toEqual(['first']);
  post('one', ['second']);
  expect(await second).toEqual(['second']);
});

test('an abandoned poll takes no memos', async () => {
  const { post, take } = memos();
  const gone = new AbortController();
  const poll = take('one', gone.signal);
  gone.abort();
  post('one', ['first']);
  expect(await poll).toBeNull();
  expect(await take('one', open)).toEqual(['first']);
});
