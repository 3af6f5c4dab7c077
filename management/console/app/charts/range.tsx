import { useLocation } from 'preact-iso';
import { SPANS, type Span, type StepName, TRAFFIC_STEPS, type TrafficRange } from '../data/traffic.ts';
import { absolute, words } from '../text/format.ts';

const USUAL = SPANS[1];

/** The range that the page's address names, so that a link shows the same to another person. */
export function useRange(): { readonly range: TrafficRange; set(changes: Partial<TrafficRange>): void } {
  const { path, query, route } = useLocation();
  const span = SPANS.find(({ name }) => name.toLowerCase() === query.span) ?? USUAL;
  const step = stepIn(span, query.step);
  const end = Date.parse(query.to ?? '');
  const range: TrafficRange = { span, step, to: Number.isNaN(end) ? null : end };
  return {
    range,
    set: (changes) => {
      const next = { ...range, ...changes };
      const chosen = stepIn(next.span, next.step);
      const text = new URLSearchParams(query);
      text.set('span', next.span.name.toLowerCase());
      if (chosen === next.span.steps[0]) text.delete('step');
      else text.set('step', chosen);
      if (next.to === null) text.delete('to');
      else text.set('to', new Date(next.to).toISOString());
      route(`${path}?${text}${location.hash}`, true);
    },
  };
}

/** The step of that name, if the span can be shown in such steps, else the span's usual step. */
function stepIn({ steps }: Span, name: string | undefined): StepName {
  return steps.find((one) => one === name) ?? steps[0];
}

/** Chooses span, step and end. */
export function RangeChoice({
  range,
  set,
}: {
  range: TrafficRange;
  set: (changes: Partial<TrafficRange>) => void;
}) {
  const { span, step, to } = range;
  const move = (by: 1 | -1) => {
    const end = (to ?? Date.now()) + by * span.seconds * 1000;
    set({ to: end >= Date.now() ? null : end });
  };
  return (
    <div class="range">
      <fieldset class="segments">
        <legend class="hidden">Time span</legend>
        {SPANS.map((one) => (
          <button
            key={one.name}
            type="button"
            aria-pressed={one === span}
            onClick={() => set({ span: one, step: one.steps[0] })}
          >
            {one.name}
          </button>
        ))}
      </fieldset>
      {span.steps.length > 1 && (
        <select
          aria-label="Step of the charts"
          value={step}
          onChange={({ currentTarget }) => {
            const chosen = span.steps.find((one) => one === currentTarget.value);
            if (chosen !== undefined) set({ step: chosen });
          }}
        >
          {span.steps.map((one) => (
            <option key={one} value={one}>
              By {one}
            </option>
          ))}
        </select>
      )}
      <fieldset class="segments">
        <legend class="hidden">Earlier or later</legend>
        <button type="button" aria-label={`One ${span.name.toLowerCase()} earlier`} onClick={() => move(-1)}>
          ‹
        </button>
        <button
          type="button"
          aria-label={`One ${span.name.toLowerCase()} later`}
          disabled={to === null}
          onClick={() => move(1)}
        >
          ›
        </button>
      </fieldset>
    </div>
  );
}

/** The range in words: `in the last day`. */
export function rangeText({ span, to }: TrafficRange): string {
  if (to === null) return `in the last ${span.name === 'Quarter' ? '90 days' : span.name.toLowerCase()}`;
  return `in the ${span.name === 'Quarter' ? '90 days' : span.name.toLowerCase()} until ${absolute(to)}`;
}

/** The width of a step in words, for the titles of charts: `per hour`. */
export function perStep(traffic: { readonly step: number }): string {
  const [name = 'step'] = Object.entries(TRAFFIC_STEPS).find(([, seconds]) => seconds === traffic.step) ?? [];
  return `per ${words(name).toLowerCase()}`;
}
