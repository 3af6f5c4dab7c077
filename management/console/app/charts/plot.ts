import uPlot from 'uplot';

export interface PlotData {
  /** Where each step begins, seconds since the epoch. */
  readonly times: readonly number[];
  readonly series: readonly (readonly (number | null)[])[];
}

export interface PlotStyle {
  readonly kind: 'bars' | 'lines';
  readonly unit: string;
  readonly top: number | undefined;
  /** Names of colours in `tokens.css`, one for each series. */
  readonly colours: readonly string[];
  readonly text: (value: number) => string;
}

export interface Plot {
  set(data: PlotData): void;
  destroy(): void;
}

const HEIGHT = 180;
/** Charts of one page show the same time when the pointer is over one of them. */
const SYNC = 'traffic';
const FONT = '12px system-ui, sans-serif';
/** Steps of the axis of what is counted. */
const WHOLE = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((one) => one * 10 ** power)).flat();
/** Lines also differ by their dashes, not by colour alone. */
const DASHES = [[], [6, 4], [2, 3]] as const;

const HOUR = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

/** The local time of day; at midnight, the date. */
function clockText(seconds: number): string {
  const time = new Date(seconds * 1000);
  return time.getHours() === 0 && time.getMinutes() === 0 ? DAY.format(time) : HOUR.format(time);
}

/** For stacked bars, each series on top of the ones before it. */
function columnsOf({ times, series }: PlotData, kind: PlotStyle['kind']): uPlot.AlignedData {
  if (kind === 'lines') return [[...times], ...series.map((values) => [...values])];
  const tops = times.map((_time, index) => {
    let sum = 0;
    return series.map((values) => {
      const value = values[index] ?? null;
      if (value === null) return null;
      sum += value;
      return sum;
    });
  });
  // The tallest first, so that the others are drawn over it.
  const order = series.map((_values, index) => index).toReversed();
  return [[...times], ...order.map((index) => tops.map((row) => row[index] ?? null))];
}

/** A colour of the theme as a canvas takes it: without variables and functions. */
function resolved(host: HTMLElement, name: string): string {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  host.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Draws into `host`, at its width, in the colours of the page’s theme. `onPoint` gets the step under the pointer. */
export function draw(
  host: HTMLElement,
  style: PlotStyle,
  data: PlotData,
  onPoint: (index: number | null) => void,
): Plot {
  const { kind, unit, top } = style;
  const colour = (name: string) => resolved(host, `--${name}`);
  const ofSeries = (name: string) => resolved(host, `--plot-${name}`);
  let shown = data;
  const step = () => (shown.times[1] ?? 0) - (shown.times[0] ?? 0);
  const axis = (): uPlot.Axis => ({
    stroke: () => colour('dim'),
    grid: { stroke: () => colour('line'), width: 1 },
    ticks: { show: false },
    font: FONT,
  });
  const paths = kind === 'bars' ? uPlot.paths.bars?.({ size: [0.8, 40], align: 1 }) : undefined;
  const colours = kind === 'bars' ? style.colours.toReversed() : style.colours;
  const plot = new uPlot(
    {
      width: host.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: {
        drag: { x: false, y: false },
        points: { show: kind === 'lines', size: 7 },
        sync: { key: SYNC },
        y: false,
      },
      hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
      scales: {
        // The last step ends where the next one would begin.
        x: { range: (_plot, min, max) => [min, max + step()] },
        y: { range: (_plot, _min, max) => [0, top ?? Math.max(1, max * 1.1)] },
      },
      axes: [
        { ...axis(), size: 32, values: (_plot, times) => times.map(clockText) },
        {
          ...axis(),
          ...(kind === 'bars' ? { incrs: WHOLE } : {}),
          ...{ size: 56, label: unit, labelSize: 20, labelFont: FONT },
        },
      ],
      series: [
        {},
        ...colours.map(
          (name, index): uPlot.Series => ({
            ...(paths === undefined ? { width: 2, dash: [...(DASHES[index] ?? [])] } : { paths, width: 0 }),
            ...(kind === 'bars' ? { fill: () => ofSeries(name) } : {}),
            stroke: () => ofSeries(name),
            spanGaps: false,
            points: { show: false },
          }),
        ),
      ],
    },
    columnsOf(data, kind),
    host,
  );
  const resizing = new ResizeObserver(() => plot.setSize({ width: host.clientWidth, height: HEIGHT }));
  resizing.observe(host);
  const redraw = () => plot.redraw();
  const theming = new MutationObserver(redraw);
  theming.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
  // Unless the person has chosen a theme, the page has the system's.
  const system = matchMedia('(prefers-color-scheme: dark)');
  system.addEventListener('change', redraw);
  return {
    set: (now) => {
      shown = now;
      plot.setData(columnsOf(now, kind));
    },
    destroy: () => {
      resizing.disconnect();
      theming.disconnect();
      system.removeEventListener('change', redraw);
      plot.destroy();
    },
  };
}
