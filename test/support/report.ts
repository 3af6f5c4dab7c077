interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** The outcome of one test file; `path` is relative to the tree's root. */
export interface FileOutcome extends Counts {
  readonly path: string;
  readonly seconds: number;
  /** The first line of each error, after the test's full name unless the file itself failed. */
  readonly failures: readonly string[];
  /** The failures of the first try, where a second one passed (`TAGYARD_SECOND_TRY`). */
  readonly retried?: readonly string[];
}

export function sum(outcomes: readonly Counts[]): Counts {
  return outcomes.reduce<Counts>(
    (total, { passed, failed, skipped }) => ({
      passed: total.passed + passed,
      failed: total.failed + failed,
      skipped: total.skipped + skipped,
    }),
    { passed: 0, failed: 0, skipped: 0 },
  );
}

/**
 * Shows how many files of each project have ended, in one line that is written anew on a terminal, and elsewhere in a
 * line every `everyMs`. A failure is shown at once.
 */
export function progress(
  projects: readonly { readonly name: string; readonly files: readonly string[] }[],
  everyMs: number,
) {
  const started = Date.now();
  const done = new Map(projects.map(({ name }) => [name, 0]));
  const running = new Set<string>();
  const { isTTY = false, columns = 80 } = process.stdout;
  const text = () => {
    const parts = projects.flatMap(({ name, files }) => {
      const count = done.get(name) ?? 0;
      return running.has(name) && count < files.length ? [`${name} ${count}/${files.length}`] : [];
    });
    const all = projects.reduce((total, { files }) => total + files.length, 0);
    const ended = [...done.values()].reduce((total, count) => total + count, 0);
    return `${Math.round((Date.now() - started) / 1000)} s: ${ended} of ${all} files · ${parts.join(' · ')}`;
  };
  const erase = () => isTTY && process.stdout.write('\r\x1b[K');
  const draw = () => {
    if (isTTY) process.stdout.write(`\r\x1b[K${text().slice(0, columns - 1)}`);
    else console.log(text());
  };
  const timer = setInterval(draw, isTTY ? 1000 : everyMs);
  return {
    began: (name: string) => void running.add(name),
    ended(name: string, { path, failures }: FileOutcome) {
      done.set(name, (done.get(name) ?? 0) + 1);
      if (failures.length === 0) return;
      erase();
      for (const failure of failures) console.log(`failed: ${path} > ${failure}`);
    },
    end() {
      clearInterval(timer);
      erase();
    },
  };
}

interface Report {
  readonly outcomes: readonly (FileOutcome & { readonly project: string })[];
  /** Missing components, and how many of the selected files need them. */
  readonly leftOut: readonly {
    readonly component: string;
    readonly reason: string;
    readonly files: number;
  }[];
  /** What another command runs. */
  readonly later: readonly { readonly reason: string; readonly files: number }[];
  readonly seconds: number;
  /** The folder with Vitest's own output. */
  readonly logs: string;
}

/** The end of a run's output, on one screen unless much failed. Its last line is `N passed, N failed`, for programs. */
export function renderReport({ outcomes, leftOut, later, seconds, logs }: Report): string {
  const projects = [...Map.groupBy(outcomes, ({ project }) => project)];
  const total = sum(outcomes);
  return [
    '',
    line('', ['files', 'passed', 'failed', 'skipped', 'seconds']),
    ...projects.map(([name, files]) => row(name, files)),
    ...(projects.length > 1 ? [row('all', outcomes)] : []),
    `${Math.round(seconds)} s in all; the seconds above are summed over files, which run beside each other.`,
    '',
    ...section(
      'Left out, because this machine lacks a component (test/setup-debian.sh and test/setup-kubernetes.sh install them):',
      [...leftOut.map(({ component, reason, files }) => `${component.padEnd(12)}${count(files)}: ${reason}`)],
    ),
    ...section('`npm run test:all` also runs what takes long or needs components:', [
      ...later.map(({ reason, files }) => `${count(files)}: ${reason}`),
    ]),
    ...section(
      'Passed at the second try only:',
      outcomes.flatMap(({ path, retried = [] }) => retried.map((failure) => `${path} > ${failure}`)),
    ),
    ...section(
      `Failed (${logs}/<project>.log has diffs and stacks):`,
      outcomes.flatMap(({ path, failures }) => failures.map((failure) => `${path} > ${failure}`)),
    ),
    `${total.passed} passed, ${total.failed} failed`,
  ].join('\n');
}

const count = (files: number) => `${files} ${files === 1 ? 'file' : 'files'}`;

const section = (title: string, lines: readonly string[]) =>
  lines.length === 0 ? [] : [title, ...lines.map((text) => `  ${text}`), ''];

function row(name: string, files: readonly FileOutcome[]): string {
  const { passed, failed, skipped } = sum(files);
  const seconds = files.reduce((all, file) => all + file.seconds, 0);
  return line(name, [files.length, passed, failed, skipped, seconds.toFixed(0)]);
}

function line(name: string, cells: readonly (string | number)[]): string {
  return [name.padEnd(18), ...cells.map((cell) => String(cell).padStart(9))].join('');
}
