import { useEffect, useState } from 'preact/hooks';
import { ChoiceField, TextField } from '../../../parts/fields.tsx';
import type { SettingsDraft } from './draft.ts';

type Region = SettingsDraft['regions'][number];

const PLACE = '[A-Za-z]{2}(?:\\-[A-Za-z0-9]{1,3})?';
const SEPARATOR = '[\\s,;]+';
const MOST = 20;

/** Places with other rules than the site's. A visitor whose place is unknown gets the strictest rules. */
export function RegionRules({
  regions,
  set,
  isReadOnly,
}: {
  regions: SettingsDraft['regions'];
  set: (regions: SettingsDraft['regions']) => void;
  isReadOnly: boolean;
}) {
  const change = (index: number, region: Region) =>
    set(regions.map((one, at) => (at === index ? region : one)));
  return (
    <>
      <h3>Rules by place</h3>
      <p class="small dim">
        {regions.length === 0
          ? 'None: the rules above apply everywhere.'
          : 'Elsewhere the rules above apply. A visitor whose place is unknown gets the strictest rules.'}
      </p>
      {regions.map((region, index) => (
        <fieldset key={index} class="plain inset">
          <legend class="hidden">Rule {index + 1}</legend>
          <div class="grid">
            <Places region={region} set={(places) => change(index, { ...region, places })} />
            <Rule
              label="Consent"
              name="consent"
              region={region}
              of={[
                { value: 'opt_out', name: 'Unless the visitor refuses' },
                { value: 'required', name: 'Only after a grant' },
              ]}
              set={(next) => change(index, next)}
            />
            <Rule
              label="Consent Mode"
              name="consentMode"
              region={region}
              of={[
                { value: 'basic', name: 'Basic: no tags before a grant' },
                { value: 'advanced', name: 'Advanced: no cookies before a grant' },
              ]}
              set={(next) => change(index, next)}
            />
            <Rule
              label="Fallback"
              name="fallback"
              region={region}
              of={[
                { value: 'vendor', name: 'Google’s script directly' },
                { value: 'none', name: 'No tag' },
              ]}
              set={(next) => change(index, next)}
            />
          </div>
          {!isReadOnly && (
            <button
              type="button"
              aria-label={`Remove the rule ${index + 1}`}
              onClick={() => set(regions.filter((_one, at) => at !== index))}
            >
              Remove the rule
            </button>
          )}
        </fieldset>
      ))}
      {!isReadOnly && regions.length < MOST && (
        <div>
          <button type="button" onClick={() => set([...regions, { places: [], consent: 'required' }])}>
            Add a rule for places
          </button>
        </div>
      )}
    </>
  );
}

function placesIn(text: string): string[] {
  return text
    .toUpperCase()
    .split(/[\s,;]+/)
    .filter((place) => place !== '');
}

/** The field keeps the text as it was typed, with its commas; the draft has the places. */
function Places({ region: { places }, set }: { region: Region; set: (places: string[]) => void }) {
  const [text, setText] = useState(places.join(', '));
  useEffect(() => {
    if (placesIn(text).join() !== places.join()) setText(places.join(', '));
  }, [places.join()]);
  return (
    <TextField
      label="Places"
      hint="Countries or parts of them by ISO 3166, such as DE, US-CA"
      value={text}
      set={(next) => {
        setText(next);
        set(placesIn(next));
      }}
      pattern={`\\s*${PLACE}(?:${SEPARATOR}${PLACE})*${SEPARATOR.replace('+', '*')}`}
      required
      placeholder="DE, AT, CH"
    />
  );
}

function Rule<Name extends 'consent' | 'consentMode' | 'fallback'>({
  label,
  name,
  region,
  of,
  set,
}: {
  label: string;
  name: Name;
  region: Region;
  of: readonly { readonly value: NonNullable<Region[Name]>; readonly name: string }[];
  set: (region: Region) => void;
}) {
  const { [name]: value, ...others } = region;
  return (
    <ChoiceField
      label={label}
      value={value ?? ''}
      of={[{ value: '', name: 'As elsewhere' }, ...of]}
      set={(next) => set((next === '' ? others : { ...others, [name]: next }) as Region)} // a value of `of`
    />
  );
}
