import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, test } from 'vitest';
import { FOLDER, MOST_BYTES, PICTURES } from './pictures/pictures.ts';

const names = PICTURES.map(({ file }) => file).sort();

/** The pictures that a document shows, by their file names. */
const shownBy = (document: string, folder: string) =>
  [...readFileSync(document, 'utf8').matchAll(/!\[([^\]]+)\]\(([^)]+)\/([^/)]+)\)/g)]
    .filter(([, , path]) => path === folder)
    .map(([, , , file = '']) => file);

describe('the pictures of npm run screenshots', () => {
  test('are the files of their folder', () => {
    expect(
      globSync(`${FOLDER}/*`)
        .map((path) => basename(path))
        .sort(),
    ).toEqual(names);
  });

  test.each(PICTURES)('$file has the size of its viewport, and few bytes', ({ file, viewport }) => {
    const png = readFileSync(`${FOLDER}/${file}`);
    expect(png.subarray(1, 4).toString()).toBe('PNG');
    // PNG, 11.2.2: the first chunk has width and height.
    expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([viewport.width, viewport.height]);
    expect(png.length).toBeLessThanOrEqual(MOST_BYTES);
  });

  test('are all in the README or docs/console.md, which show no other', () => {
    const shown = [...shownBy('README.md', FOLDER), ...shownBy('docs/console.md', 'screenshots')];
    expect([...new Set(shown)].sort()).toEqual(names);
    expect(shownBy('README.md', FOLDER).length).toBeGreaterThan(0);
  });
});
