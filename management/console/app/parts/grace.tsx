import { absolute } from '../text/format.ts';
import { TextField } from './fields.tsx';

const DAY_MS = 86_400_000;

/** The UTC date this number of days from now, as the API takes it. */
export function graceDate(days: string): string {
  return new Date(Date.now() + (Number(days) || 0) * DAY_MS).toISOString().slice(0, 10);
}

/** For how many days an old token is still accepted. */
export function GraceField({ value, set, max }: { value: string; set: (days: string) => void; max: number }) {
  return (
    <TextField
      label="Days of grace"
      hint={`The old token works until ${absolute(`${graceDate(value)}T00:00:00Z`)}; 0: it is refused at once`}
      type="number"
      min={0}
      max={max}
      value={value}
      set={set}
      required
    />
  );
}
