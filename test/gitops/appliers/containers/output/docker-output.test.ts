import { expect, test } from 'vitest';
import { FrameReader } from '../../../../../gitops/appliers/containers/output/docker-output.ts';

const at = (index: number) => `2026-11-23T10:28:20.${String(index).padStart(9, '0')}Z`;
const frame = (stream: 1 | 2, time: string, text: string): Buffer => {
  const payload = Buffer.from(`${time} ${text}`);
  const header = Buffer.alloc(8);
  header.writeUInt8(stream, 0);
  header.writeUInt32BE(payload.length, 4);
  return Buffer.concat([header, payload]);
};
/** Two lines at the same time, a line in two frames with a line of the other stream in between, and a last line. */
const FRAMES = [
  frame(1, at(1), 'one\n'),
  frame(1, at(1), 'two\n'),
  frame(1, at(2), 'three, '),
  frame(2, at(3), 'error\n'),
  frame(1, at(2), 'four\n'),
  frame(1, at(4), 'last\r\n'),
];
const TEXTS = ['one', 'two', 'error', 'three, four', 'last'];
const texts = (lines: readonly { readonly text: string | null }[]) => lines.map(({ text }) => text);

test('frames become lines, however they are cut', () => {
  const octets = Buffer.concat(FRAMES);
  for (const size of [1, 7, 40, octets.length]) {
    const reader = new FrameReader({});
    const lines = [];
    for (let from = 0; from < octets.length; from += size)
      lines.push(...reader.push(octets.subarray(from, from + size)));
    expect(texts(lines)).toEqual(TEXTS);
    expect(lines.map(({ stream }) => stream)).toEqual(['stdout', 'stdout', 'stderr', 'stdout', 'stdout']);
    expect(lines[0]?.time).toBe('2026-11-23T10:28:20.000Z');
  }
});

test('after each line, the rest is read without a gap and without a repetition', () => {
  const whole = new FrameReader({}).push(Buffer.concat(FRAMES));
  for (let count = 0; count <= whole.length; count += 1) {
    const positions: Record<string, unknown> = {};
    for (const { stream, position } of whole.slice(0, count)) positions[stream] = position;
    const rest = new FrameReader(positions).push(Buffer.concat(FRAMES));
    expect(texts(rest)).toEqual(TEXTS.slice(count));
  }
});

test('a line that is too long is counted, and its parts are not taken for lines', () => {
  const part = 'x'.repeat(16 * 1024);
  const frames = Array.from({ length: 20 }, () => frame(1, at(1), part));
  const lines = new FrameReader({}).push(
    Buffer.concat([...frames, frame(1, at(1), 'end\n'), frame(1, at(2), 'next\n')]),
  );
  expect(lines).toMatchObject([{ text: null, lost: 1 }, { text: 'next' }]);
});
