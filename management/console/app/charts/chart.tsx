import { useEffect, useRef, useState } from 'preact/hooks';
import { absolute, plural } from '../text/format.ts';
import type { Plot, PlotData, PlotStyle } from './plot.ts';

interface Series {
  readonly name: string;
  /** The name of a colour in `tokens.css`. */
  readonly colour: string;
  /** One value for each time; `null`: unknown. */
  readonly values: readonly (number | null)[];
}

/**
 * A chart of values over time. The scale begins at zero, and steps without a known value are gaps. The pointer shows
 * the values of one step; the table below has all of them.
 */
export function Chart({
  title,
  unit,
  kind,
  times,
  series,
  text,
  top,
}: {
  title: string;
  unit: string;
  /** `bars` are stacked. */
  kind: PlotStyle['kind'];
  /** Where each step begins, seconds since the epoch. */
  times: readonly number[];
  series: readonly Series[];
  /** A value as text, with its unit. */
  text: (value: number) => string;
  /** The end of the scale; absent: it fits the values. */
  top?: number;
}) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const data: PlotData = { times, series: series.map(({ values }) => values) };
  const latest = useRef(data);
  latest.current = data;
  const colours = series.map(({ colour }) => colour).join();
  useEffect(() => {
    const host = box.current;
    if (host === null) return;
    let isOver = false;
    import('./plot.ts').then(
      ({ draw }) => {
        if (isOver) return;
        const style = { kind, unit, top, colours: colours.split(','), text };
        plot.current = draw(host, style, latest.current, setAt);
      },
      () => {}, // after an update the file can be gone; the table has the numbers
    );
    return () => {
      isOver = true;
      plot.current?.destroy();
      plot.current = null;
    };
  }, [kind, unit, top, colours]);
  useEffect(() => plot.current?.set(data), [times, series]);
  const unknown = times.filter((_time, index) => series.every(({ values }) => values[index] === null)).length;
  const pointed = at === null ? undefined : times[at];
  return (
    <figure class="chart-box">
      <figcaption>
        <h3>{title}</h3>
        <ul class="legend">
          {series.map(({ name, colour, values }) => (
            <li key={name} class={colour}>
              {name}
              {at !== null && pointed !== undefined && (
                <span class="strong">
                  {values[at] === null || values[at] === undefined ? 'unknown' : text(values[at])}
                </span>
              )}
            </li>
          ))}
          {pointed !== undefined && <li class="when">{absolute(pointed * 1000)}</li>}
        </ul>
      </figcaption>
      <div class="chart" ref={box} role="img" aria-label={`${title}; the table below has the numbers`} />
      <details>
        <summary class="small">
          As a table
          {unknown > 0 && (
            <span class="dim">
              {' '}
              · gaps: {unknown} of {plural(times.length, 'step')}
            </span>
          )}
        </summary>
        <ChartTable times={times} series={series} text={text} />
      </details>
    </figure>
  );
}

function ChartTable({
  times,
  series,
  text,
}: {
  times: readonly number[];
  series: readonly Series[];
  text: (value: number) => string;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a long table scrolls, also by keyboard
    <div class="table-box low" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">From</th>
            {series.map(({ name }) => (
              <th key={name} scope="col" class="right">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times
            .map((time, index) => (
              <tr key={time}>
                <td>{absolute(time * 1000)}</td>
                {series.map(({ name, values }) => (
                  <td key={name} class="right">
                    {values[index] === null || values[index] === undefined ? 'unknown' : text(values[index])}
                  </td>
                ))}
              </tr>
            ))
            .toReversed()}
        </tbody>
      </table>
    </div>
  );
}
