import { posix } from 'node:path';
import type { Violations } from './rules.ts';
import type { SourceFile } from './source.ts';

/**
 * Words that the project doesn't use, in any case or sense, also as a part of a name (`isTended`, `needs_door`), each
 * with what to write instead, mostly a term of the field. `docs/glossary.md` explains the terms.
 */
const REPLACED: Readonly<Record<string, string>> = {
  amiss: 'say what is wrong',
  board: 'site statuses',
  departure: 'removal',
  door: 'port or gate',
  fight: 'repair loop',
  goes: 'say what is done',
  lane: 'limit or group',
  leave: 'say what is done',
  look: 'observe or check',
  mend: 'fix or repair',
  nobody: 'no + the thing',
  patience: 'timeout',
  share: 'a value that is returned; shared',
  shelf: 'cache scope',
  somebody: 'say who',
  stands: 'say what is done',
  tend: 'say what is done',
  told: 'say what is done',
  trip: 'request scope',
  turn: 'limit or mutex',
  wake: 'trigger or start',
  whoever: 'say who',
  wish: 'desired',
};

/** Inflected and irregular forms, by the word that they belong to. */
const FORMS: Readonly<Record<string, readonly string[]>> = {
  leave: ['leaves', 'leaving'],
  lane: ['lanes'],
  shelf: ['shelves'],
  wake: ['wakes', 'waking', 'woke', 'woken', 'awake'],
  fight: ['fights', 'fighting', 'fought'],
  mend: ['mends', 'mended', 'mending'],
  wish: ['wishes', 'wished', 'wishing'],
  look: ['looks', 'looked', 'looking'],
  turn: ['turns', 'turned', 'turning'],
  tend: ['tends', 'tended', 'tending'],
  share: ['shares', 'sharing'],
  trip: ['trips'],
  door: ['doors'],
  board: ['boards'],
  departure: ['departures'],
};

const TERM_OF: ReadonlyMap<string, string> = new Map(
  Object.entries(REPLACED).flatMap(([word, term]) =>
    [word, ...(FORMS[word] ?? [])].map((form): [string, string] => [form, term]),
  ),
);

/**
 * Idioms of several words that a reader would read twice. They are searched in a text whose line breaks and comment
 * marks are folded into one space.
 */
const PHRASES =
  /\b(?:is had|sees to|seen ?to|saw to|for want of|of (?:before(?!\.)|yours)|is none of an?)\b/gi;

/** The parts of `camelCase`, `snake_case`, `CONSTANT_CASE` and plain words, in lower case. */
function wordsOf(line: string): string[] {
  const parts = line.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? [];
  return parts.map((part) => part.toLowerCase());
}

/** Where `share` isn't the verb: `/usr/share`, a field in Fastly's language, the API's name for a fraction. */
const FOREIGN = /\/usr\/share\b|\.share_key\b|\bconsentShare\b/g;

/** Words and phrases that the project doesn't use, in the text of files and in their names. */
export function vocabulary(files: readonly SourceFile[]): Violations {
  return files.flatMap(({ path, text }) => {
    const lines = text.replace(FOREIGN, '').split('\n');
    const name = posix.basename(path);
    const inLines = [name, ...lines].flatMap((line, number) =>
      [...new Set(wordsOf(line))].flatMap((word) => {
        const term = TERM_OF.get(word);
        return term === undefined ? [] : [`${path}:${number}: "${word}" (${term})`];
      }),
    );
    const folded = text.replace(/\s*\n\s*(?:\*|\/\/|#)?\s*/g, ' ');
    const phrases = [...folded.matchAll(PHRASES)].map(([phrase]) => `${path}: "${phrase}"`);
    return [...inLines, ...phrases];
  });
}

/** The Markdown files that a text names, with or without a folder, and that the repository doesn't have. */
export function missingDocuments(files: readonly SourceFile[], existing: ReadonlySet<string>): Violations {
  return files.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, index) =>
      [...line.matchAll(/(?<![\w/.-])((?:[\w./-]*\/)?[\w-]+\.md)\b/g)].flatMap(([, name = '']) => {
        const places = [posix.normalize(name), posix.join(posix.dirname(path), name)];
        return places.some((place) => existing.has(place))
          ? []
          : [`${path}:${index + 1}: refers to ${name}, which the repository doesn't have`];
      }),
    ),
  );
}
