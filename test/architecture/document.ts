import type { Floor } from './graph.ts';
import type { Violations } from './rules.ts';

/** The text below a heading, up to the next heading of its level or a higher one. */
function sectionOf(text: string, heading: string): string {
  const [, after = ''] = `\n${text}`.split(`\n${heading}\n`);
  const level = heading.indexOf(' ');
  const end = after.search(new RegExp(`^#{1,${level}} `, 'm'));
  return end === -1 ? after : after.slice(0, end);
}

/** The cells of each row of the tables in a text, without separator lines and the headers of floors. */
function rowsOf(text: string): string[][] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| floor '))
    .map((line) => line.split('|').slice(1, -1));
}

const quoted = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].flatMap(([, name]) => name ?? []);

/** `{a,b}/c.ts` as `a/c.ts` and `b/c.ts`. */
function expanded(pattern: string): string[] {
  const [braces, inner] = /\{([^}]*)\}/.exec(pattern) ?? [];
  if (braces === undefined || inner === undefined) return [pattern];
  return inner.split(',').flatMap((one) => expanded(pattern.replace(braces, one)));
}

/** The table of a part's floors in docs/architecture.md has the rooms of `floors`, and no others. */
export function wrongFloors(text: string, part: string, floors: readonly Floor[]): Violations {
  const section = sectionOf(text, '## Who may import whom');
  const [, table = ''] = section.split(`| floor | folders of \`${part}/\` |`);
  const own = table.split('\n\n', 1)[0] ?? '';
  const shown = rowsOf(own).flatMap(([floor = '', rooms = '']) =>
    quoted(rooms).map((room) => `${floor.trim()} ${room}`),
  );
  const expected = floors.flatMap(({ number, rooms }) =>
    rooms.flatMap(expanded).map((room) => {
      const name = room.slice(part.length + 1).replace(/\*\*$/, '');
      // For the files directly in `verification/`, the table has only the folder's name.
      return `${number} ${number === 0 && name.startsWith('verification/') ? 'verification/' : name}`;
    }),
  );
  const [has, wants] = [new Set(shown), new Set(expected)];
  return [
    ...[...wants]
      .filter((room) => !has.has(room))
      .map((room) => `docs/architecture.md lacks floor ${room} of ${part}`),
    ...[...has]
      .filter((room) => !wants.has(room))
      .map((room) => `docs/architecture.md has floor ${room} of ${part}`),
  ];
}

/** Parts, and folders directly in them, that the table of folders doesn't name. */
export function missingFolders(text: string, paths: readonly string[]): Violations {
  const named = rowsOf(sectionOf(text, '## Folders')).flatMap(([names = '', content = '']) => {
    const [first = ''] = quoted(names);
    const part = `${first.split('/')[0]}/`;
    return quoted(`${names} ${content}`).flatMap((name) => [name, part + name]);
  });
  const folders = paths.flatMap((path) => {
    const [part = '', folder = '', ...rest] = path.split('/');
    return rest.length > 0 && part !== 'plugins' ? [`${part}/${folder}/`] : [`${part}/`];
  });
  return [...new Set(folders)]
    .filter((folder) => !named.some((name) => name === folder || name.startsWith(`${folder}<`)))
    .map((folder) => `docs/architecture.md doesn't name ${folder}`);
}
