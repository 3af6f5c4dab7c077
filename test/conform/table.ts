import type { Behaviour } from './behaviour.ts';
import { NotTried, reasonNotTried } from './not-tried.ts';

export type Outcome = 'same' | 'differs' | 'not tried';

export interface Row {
  readonly name: string;
  readonly source: string;
  readonly outcome: Outcome;
  /** How it differs, or why it was not tried; empty for `same`. */
  readonly detail: string;
}

/** A target that is ready. `close` is called once, whatever happens. */
export interface OpenTarget<Target> {
  readonly target: Target;
  /** What exactly is tried, such as an image's digest. */
  readonly subject: string;
  /** Why outcomes since the last `lost` prove nothing about the target, such as a lost network; `null`: they count. */
  readonly lost?: () => string | null;
  /** What may explain a difference, such as a container's log; called after a behaviour that differs. */
  readonly evidence?: () => Promise<string>;
  /** Removes all that the run made. Rejects only if it is unknown what remains. */
  readonly close: () => Promise<Closing>;
}

interface Closing {
  /** What the run cost, such as `41 calls`. */
  readonly costs: readonly string[];
  /** What could not be removed, each with what to do. */
  readonly remains: readonly string[];
}

/** The behaviours of one kind of target, and how to open the target. */
export interface Table<Target> {
  readonly name: string;
  readonly behaviours: readonly Behaviour<Target>[];
  /** Rejects where the target can't be used: no behaviour is tried then. */
  readonly open: (signal: AbortSignal) => Promise<OpenTarget<Target>>;
}

export interface TableReport extends Closing {
  readonly table: string;
  /** Empty where the target was never opened. */
  readonly subject: string;
  readonly rows: readonly Row[];
}

export interface TableRun {
  /** When it aborts, the run ends early and removes what it made. */
  readonly signal: AbortSignal;
  readonly onOpen: (table: string, subject: string) => void;
  readonly onRow: (row: Row) => void;
  /** How long one behaviour may take. */
  readonly timeoutMs?: number;
}

/** Longer than the minute that KV may take, and than a slow start. */
const TIMEOUT_MS = 180_000;
const INTERRUPTED = 'the run was interrupted';

/** Opens a table's target, tries its behaviours one after another, and closes it. Never rejects. */
export async function runTable<Target>(table: Table<Target>, run: TableRun): Promise<TableReport> {
  const { name, behaviours } = table;
  const rows: Row[] = [];
  const add = (row: Row) => {
    rows.push(row);
    run.onRow(row);
  };
  const opened = await table.open(run.signal).catch((error: unknown) => {
    const detail = run.signal.aborted ? INTERRUPTED : (reasonNotTried(error) ?? messageOf(error));
    run.onOpen(name, '');
    for (const behaviour of behaviours) add(rowOf(behaviour, 'not tried', detail));
    return null;
  });
  if (opened === null) return { table: name, subject: '', rows, costs: [], remains: [] };

  run.onOpen(name, opened.subject);
  for (const behaviour of behaviours) add(await tryBehaviour(behaviour, opened, run));
  const closing = await opened.close().catch((error: unknown) => ({
    costs: [],
    remains: [`it is unknown what remains: ${messageOf(error)}`],
  }));
  return { table: name, subject: opened.subject, rows, ...closing };
}

async function tryBehaviour<Target>(
  behaviour: Behaviour<Target>,
  { target, evidence, lost = () => null }: OpenTarget<Target>,
  { signal, timeoutMs = TIMEOUT_MS }: TableRun,
): Promise<Row> {
  if (signal.aborted) return rowOf(behaviour, 'not tried', INTERRUPTED);
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const interrupt = () => reject(new NotTried(INTERRUPTED));
  signal.addEventListener('abort', interrupt, { once: true });
  const timer = setTimeout(() => reject(new Error(`it took more than ${timeoutMs} ms`)), timeoutMs);
  try {
    lost();
    await Promise.race([behaviour.check(target), ended]);
    const reason = lost();
    return reason === null ? rowOf(behaviour, 'same', '') : rowOf(behaviour, 'not tried', reason);
  } catch (error) {
    const reason = reasonNotTried(error) ?? lost();
    if (reason !== null) return rowOf(behaviour, 'not tried', reason);
    const explained = (await evidence?.().catch(messageOf)) ?? '';
    return rowOf(behaviour, 'differs', [messageOf(error), explained].filter(Boolean).join('\n'));
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', interrupt);
  }
}

function rowOf({ name, source }: Behaviour<never>, outcome: Outcome, detail: string): Row {
  return { name, source, outcome, detail };
}

/** An error with its causes, on one line each. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const message = error.message || error.name;
  return error.cause === undefined ? message : `${message}\n${messageOf(error.cause)}`;
}
