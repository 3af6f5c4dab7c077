import uPlot from 'uplot';

interface Step {
  /** Seconds since the epoch. */
  readonly time: number;
  readonly requests: number | null;
}

interface Chart {
  set(steps: readonly Step[]): void;
  destroy(): void;
}

function columnsOf(steps: readonly Step[]): uPlot.AlignedData {
  return [steps.map(({ time }) => time), steps.map(({ requests }) => requests)];
}

function colour(host: HTMLElement, name: string): string {
  return getComputedStyle(host).getPropertyValue(name).trim();
}

const HOUR = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

/** The local time of day; at its beginning, the day. */
function clockText(seconds: number): string {
  const time = new Date(seconds * 1000);
  return time.getHours() === 0 && time.getMinutes() === 0 ? DAY.format(time) : HOUR.format(time);
}

function stepOf([first, second]: readonly Step[]): number {
  return first === undefined || second === undefined ? 0 : second.time - first.time;
}

/** Bars from a zero line, as wide as the host, in the colours of the page's theme. */
export function drawBars(host: HTMLElement, height: number, steps: readonly Step[]): Chart {
  let shown = steps;
  const axis = (): uPlot.Axis => ({
    stroke: () => colour(host, '--dim'),
    grid: { stroke: () => colour(host, '--line'), width: 1 },
    ticks: { show: false },
    font: '12px system-ui, sans-serif',
  });
  const paths = uPlot.paths.bars?.({ size: [0.8, 40], align: 1 });
  const plot = new uPlot(
    {
      width: host.clientWidth,
      height,
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { show: false } },
      scales: {
        // The last bar ends where its step does.
        x: { range: (_plot, min, max) => [min, max + stepOf(shown)] },
        y: { range: (_plot, _min, max) => [0, Math.max(1, max * 1.1)] },
      },
      axes: [
        { ...axis(), values: (_plot, times) => times.map(clockText) },
        {
          ...axis(),
          size: 56,
          label: 'requests',
          labelSize: 20,
          labelFont: '12px system-ui, sans-serif',
          incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7],
        },
      ],
      series: [
        {},
        {
          label: 'Requests',
          ...(paths === undefined ? {} : { paths }),
          fill: () => colour(host, '--accent'),
          stroke: () => colour(host, '--accent'),
          width: 0,
          points: { show: false },
        },
      ],
    },
    columnsOf(steps),
    host,
  );
  const resizing = new ResizeObserver(() => plot.setSize({ width: host.clientWidth, height }));
  resizing.observe(host);
  const theming = new MutationObserver(() => plot.redraw());
  theming.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
  return {
    set: (now) => {
      shown = now;
      plot.setData(columnsOf(now));
    },
    destroy: () => {
      resizing.disconnect();
      theming.disconnect();
      plot.destroy();
    },
  };
}
