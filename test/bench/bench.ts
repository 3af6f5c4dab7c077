import { availableParallelism, cpus, totalmem } from 'node:os';

/** One figure: the median of its samples, with the spread beside it. Lower is better unless the name says otherwise. */
interface Figure {
  readonly name: string;
  readonly unit: string;
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly samples: number;
}

interface BenchOptions {
  readonly unit: string;
  /** Returns one sample. */
  run(): Promise<number> | number;
  /** How many samples; 1 if a second one would measure something else (for example after a first start). */
  readonly times?: number;
}

/** Takes one figure and shows it at once; a run that throws fails the whole bench, with the figure's name. */
export type Bench = (name: string, options: BenchOptions) => Promise<Figure>;

/** A part of the bench: sets up what it measures, and takes its figures one after another. */
export type Suite = (bench: Bench) => Promise<void>;

interface Recorder {
  readonly bench: Bench;
  readonly figures: readonly Figure[];
}

export function createRecorder(print: (line: string) => void): Recorder {
  const figures: Figure[] = [];
  const bench: Bench = async (name, { unit, run, times = 1 }) => {
    const samples: number[] = [];
    for (let index = 0; index < times; index += 1) {
      try {
        samples.push(await run());
      } catch (cause) {
        throw new Error(`bench "${name}" failed`, { cause });
      }
    }
    const figure = summarise(name, unit, samples);
    figures.push(figure);
    print(renderFigure(figure));
    return figure;
  };
  return { bench, figures };
}

export function summarise(name: string, unit: string, samples: readonly number[]): Figure {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  const middle = Math.floor(sorted.length / 2);
  return {
    name,
    unit,
    median: sorted.length % 2 === 1 ? at(middle) : (at(middle - 1) + at(middle)) / 2,
    min: at(0),
    max: at(sorted.length - 1),
    samples: sorted.length,
  };
}

export function renderFigure({ name, unit, median, min, max, samples }: Figure): string {
  const spread = samples > 1 ? `  (${round(min)} to ${round(max)}, ${samples} samples)` : '';
  return `${name.padEnd(48)}${round(median).padStart(10)} ${unit}${spread}`;
}

/** At least three significant digits. */
function round(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/** The machine that the figures were measured on; figures of different machines can't be compared. */
export function machine(): Readonly<Record<string, string | number>> {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryMiB: Math.round(totalmem() / 2 ** 20),
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
  };
}
