import { type ParsedManifest, parseManifest } from './load.ts';
import { parseInThread } from './parse-threads.ts';

/** A text within both limits takes a few milliseconds to parse, whatever it contains. Manifests have fifty lines. */
const MAX_LENGTH = 16_384;
const MAX_LINES = 400;

/** `parseManifest` for daemons: parses long texts in another thread, so that no file in git blocks the event loop. */
export async function readManifest(text: string, file: string): Promise<ParsedManifest> {
  return isShort(text) ? parseManifest(text, file) : await parseInThread({ text, file });
}

function isShort(text: string): boolean {
  if (text.length > MAX_LENGTH) return false;
  let lines = 0;
  for (let at = text.indexOf('\n'); at >= 0 && lines <= MAX_LINES; at = text.indexOf('\n', at + 1))
    lines += 1;
  return lines <= MAX_LINES && !/\r[^\n]/.test(text);
}
