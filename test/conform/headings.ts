import { readFileSync } from 'node:fs';

/** The headings of docs/facts.md. The set has lower ones twice: as `Paths` and as `Tag server image, Paths`. */
export function headings(): ReadonlySet<string> {
  const text = readFileSync(new URL('../../docs/facts.md', import.meta.url), 'utf8');
  let above = '';
  const names = [...text.matchAll(/^(##+) (.+)$/gm)].flatMap(([, marks, name = '']) => {
    if (marks === '##') above = name;
    return marks === '##' ? [name] : [name, `${above}, ${name}`];
  });
  return new Set(names);
}
