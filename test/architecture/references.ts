import { posix } from 'node:path';
import type { Violations } from './rules.ts';
import type { SourceFile } from './source.ts';

const headingsOf = ({ text }: SourceFile): string[] =>
  [...text.matchAll(/^#{1,6} (.+)$/gm)].flatMap(([, heading]) => heading?.trim() ?? []);

/** The anchor that GitHub gives a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');

/** Links of a Markdown file to another one, or within itself, whose anchor doesn't exist. */
function brokenAnchors({ path, text }: SourceFile, anchors: ReadonlyMap<string, ReadonlySet<string>>) {
  return [...text.matchAll(/\]\(([^)#\s:]*)#([^)\s]+)\)/g)].flatMap(([, target = '', anchor = '']) => {
    const document = target === '' ? path : posix.join(posix.dirname(path), target);
    return anchors.get(document)?.has(anchor) === true ? [] : [`${path}: no heading has ${target}#${anchor}`];
  });
}

/**
 * References to a heading that doesn't exist: anchors of links in Markdown; in all files, `docs/facts.md, <heading>`
 * and `docs/reconciler.md, rule <number>`. `documents` are all Markdown files.
 */
export function brokenReferences(files: readonly SourceFile[], documents: readonly SourceFile[]): Violations {
  const headings = new Map(documents.map((file) => [file.path, headingsOf(file)]));
  const anchors = new Map([...headings].map(([path, all]) => [path, new Set(all.map(anchorOf))]));
  const facts = headings.get('docs/facts.md') ?? [];
  const rules = new Set(
    (headings.get('docs/reconciler.md') ?? []).flatMap((heading) => /^\d+/.exec(heading)?.[0] ?? []),
  );
  return files.flatMap((file) => {
    const folded = file.text.replace(/\s*\n\s*(?:\*|\/\/|#)?\s*/g, ' ');
    const unknownFacts = [...folded.matchAll(/docs\/facts\.md, "?([A-Z][\w ]*)/g)].flatMap(
      ([, named = '']) =>
        facts.some((heading) => named.startsWith(heading))
          ? []
          : [`${file.path}: docs/facts.md has no ${named}`],
    );
    const unknownRules = [...folded.matchAll(/reconciler\.md\)?, rule (\d+)/g)].flatMap(([, rule = '']) =>
      rules.has(rule) ? [] : [`${file.path}: docs/reconciler.md has no rule ${rule}`],
    );
    return [
      ...(file.path.endsWith('.md') ? brokenAnchors(file, anchors) : []),
      ...unknownFacts,
      ...unknownRules,
    ];
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
