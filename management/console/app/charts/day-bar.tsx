import { plural } from '../text/format.ts';

const WIDTH = 5;
const HEIGHT = 20;

/** Requests of the last 24 hours, the running hour last and hollow; an hour of which nothing is known is a dash. */
export function DayBar({ hours }: { hours: readonly (number | null)[] }) {
  const most = Math.max(1, ...hours.map((hour) => hour ?? 0));
  const sum = hours.reduce<number>((total, hour) => total + (hour ?? 0), 0);
  return (
    <svg
      class="day-bar"
      role="img"
      aria-label={`${plural(sum, 'request')} in 24 hours, at most ${most} in one`}
      width={hours.length * WIDTH}
      height={HEIGHT}
    >
      {hours.map((hour, index) => {
        const height = hour === null ? 1 : hour === 0 ? 0 : Math.max(2, Math.round((hour / most) * HEIGHT));
        const style = hour === null ? 'unknown' : index === hours.length - 1 ? 'running' : undefined;
        return (
          <rect
            key={index}
            class={style}
            x={index * WIDTH}
            y={HEIGHT - height}
            width={WIDTH - 1}
            height={height}
          />
        );
      })}
    </svg>
  );
}
