import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { z } from 'zod';

const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url));
/** Hides this process's variables from the command: a test must not reach a real zone with the machine's settings. */
const NO_SETTINGS = {
  CLOUDFLARE_API_TOKEN: '',
  CLOUDFLARE_ZONE_ID: '',
  CONFORM_CONTAINER_CONFIG: '',
  CONFORM_WEB_TAG_ID: '',
};

const row = z.object({
  name: z.string(),
  outcome: z.enum(['same', 'differs', 'not tried']),
  detail: z.string(),
});
const report = z.object({
  exitCode: z.number(),
  tables: z.array(
    z.object({
      table: z.string(),
      subject: z.string(),
      rows: z.array(row),
      costs: z.array(z.string()),
      remains: z.array(z.string()),
    }),
  ),
});

type Settings = Readonly<Partial<Record<keyof typeof NO_SETTINGS | 'DOCKER_HOST', string>>>;

/** Starts the command as its own process. `prefix`: a command to run it by, such as `unshare --net`. */
export function startConform(
  args: readonly string[],
  settings: Settings = {},
  prefix: readonly string[] = [],
) {
  const [file = process.execPath, ...rest] = [...prefix, process.execPath, MAIN, ...args];
  return execa(file, rest, { reject: false, all: true, env: { ...NO_SETTINGS, ...settings } });
}

/** Runs the command to its end, with `--json`. `output` is all that it printed. */
export async function runConform(
  args: readonly string[],
  settings: Settings = {},
  prefix: readonly string[] = [],
) {
  const { exitCode, stdout, all } = await startConform([...args, '--json'], settings, prefix);
  const { tables } = report.parse(JSON.parse(stdout));
  const rows = tables.flatMap((table) => table.rows);
  return {
    exitCode,
    output: all,
    tables,
    rows,
    /** Names of the rows with this outcome. */
    having: (outcome: z.infer<typeof row>['outcome']) =>
      rows.filter((one) => one.outcome === outcome).map(({ name }) => name),
  };
}
