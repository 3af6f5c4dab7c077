import { join } from 'node:path';
import { execa } from 'execa';
import { eventually } from '../support/eventually.ts';
import type { Edit } from './steps.ts';

const WHO = { GIT_AUTHOR_NAME: 'Fuzz', GIT_AUTHOR_EMAIL: 'fuzz@example.net' };
const ENV = { ...WHO, GIT_COMMITTER_NAME: 'Fuzz', GIT_COMMITTER_EMAIL: 'fuzz@example.net' };
const MAIN = 'refs/heads/main';

class Moved extends Error {}

export interface Entry {
  readonly mode: string;
  readonly id: string;
  /** The path in Latin-1: each character is one byte. */
  readonly path: string;
}

/** The bare sites repository, changed by plain git without a clone, so that it can have trees that no work tree can. */
export class Repository {
  readonly #path: string;
  readonly #index: string;

  constructor(path: string, scratch: string) {
    this.#path = path;
    this.#index = join(scratch, 'fuzz-index');
  }

  async git(args: readonly string[], input: Buffer | string = ''): Promise<string> {
    const env = { ...ENV, GIT_INDEX_FILE: this.#index };
    const { stdout } = await execa('git', ['-C', this.#path, ...args], { env, input, encoding: 'latin1' });
    return stdout;
  }

  head = (): Promise<string> => this.git(['rev-parse', '--verify', MAIN]);

  /** All entries of a revision, including folders. */
  async tree(revision: string): Promise<Entry[]> {
    const listing = await this.git(['ls-tree', '-r', '-t', '-z', revision]);
    return listing.split('\0').flatMap((line) => {
      const [, mode = '', id = '', path = ''] = /^(\d{6}) \w+ (\w+)\t(.*)$/s.exec(line) ?? [];
      return mode === '' ? [] : [{ mode, id, path }];
    });
  }

  /** A blob's text; `null` where there is none, as of a submodule. */
  text = (id: string): Promise<string | null> => this.git(['cat-file', 'blob', id]).catch(() => null);

  write = (content: Buffer): Promise<string> => this.git(['hash-object', '-w', '--stdin'], content);

  /** The id of the tree of `base` after these edits. What git refuses in an index is left out, as in a work tree. */
  async edited(
    base: string,
    edits: readonly Edit[],
    contentOf: (edit: Edit) => Promise<Buffer>,
  ): Promise<string> {
    await this.git(['read-tree', base]);
    const before = new Map((await this.tree(base)).map((entry) => [entry.path, entry]));
    for (const edit of edits) {
      if (edit.op === 'delete') await this.#forget(edit.path);
      else if (edit.op === 'put') {
        const id = edit.mode === '160000' ? base : await this.write(await contentOf(edit));
        await this.#put(edit.mode, id, edit.path);
      } else {
        const entry = before.get(edit.from);
        if (entry === undefined || entry.mode === '040000') continue;
        await this.#forget(edit.from);
        await this.#put(entry.mode, entry.id, edit.to);
      }
    }
    return await this.git(['write-tree', '--missing-ok']);
  }

  /** A file takes the place of a folder, and a folder that of a file, as in a work tree. */
  async #put(mode: string, id: string, path: string): Promise<void> {
    await this.#update(`${mode} ${id}\t${path}`);
  }

  async #forget(path: string): Promise<void> {
    await this.#update(`0 ${'0'.repeat(40)}\t${path}`);
  }

  async #update(line: string): Promise<void> {
    const args = ['update-index', '--add', '--replace', '-z', '--index-info'];
    await this.git(args, Buffer.from(`${line}\0`, 'latin1')).catch(() => undefined);
  }

  async commit(tree: string, parents: readonly string[], subject: string): Promise<string> {
    return await this.git([
      'commit-tree',
      tree,
      ...parents.flatMap((parent) => ['-p', parent]),
      '-m',
      subject,
    ]);
  }

  /** Force-moves the branch. If a daemon has committed to it meanwhile, `next` is computed again. */
  async move(next: (head: string) => Promise<string>): Promise<string> {
    return await eventually(
      async () => {
        const head = await this.head();
        const revision = await next(head);
        await this.git(['update-ref', MAIN, revision, head]).catch((cause: unknown) => {
          throw new Moved('another commit came between', { cause });
        });
        return revision;
      },
      { until: (error) => !(error instanceof Moved) },
    );
  }

  async hide(): Promise<() => Promise<void>> {
    const head = await this.head();
    await this.git(['update-ref', '-d', MAIN]);
    return async () => void (await this.git(['update-ref', MAIN, head]).catch(() => undefined));
  }
}
