import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

interface FieldProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  /** What is wrong with the value. */
  readonly error?: string | undefined;
}

/** A labelled control with its explanation. */
function Field({
  label,
  hint,
  error,
  id,
  children,
}: FieldProps & { id: string; children: ComponentChildren }) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {hint && (
        <span class="dim small" id={`${id}-hint`}>
          {hint}
        </span>
      )}
      {children}
      {error !== undefined && (
        <span class="bad-text small" id={`${id}-error`}>
          {error}
        </span>
      )}
    </div>
  );
}

/** The ids of what explains a control. */
function describedBy(id: string, { hint, error }: Pick<FieldProps, 'hint' | 'error'>): string | undefined {
  const ids = [...(hint ? [`${id}-hint`] : []), ...(error === undefined ? [] : [`${id}-error`])];
  return ids.length === 0 ? undefined : ids.join(' ');
}

export function TextField({
  label,
  hint,
  error,
  value,
  set,
  type = 'text',
  ...rest
}: FieldProps & {
  value: string;
  set: (value: string) => void;
  type?: 'text' | 'email' | 'url' | 'number' | 'date';
  required?: boolean;
  pattern?: string;
  maxLength?: number;
  min?: number;
  max?: number;
  step?: number;
  placeholder?: string;
  disabled?: boolean;
}) {
  const id = useId();
  return (
    <Field label={label} hint={hint} error={error} id={id}>
      <input
        id={id}
        type={type as 'text'}
        aria-describedby={describedBy(id, { hint, error })}
        aria-invalid={error !== undefined}
        value={value}
        autoComplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => set(currentTarget.value)}
        {...rest}
      />
    </Field>
  );
}

export function AreaField({
  label,
  hint,
  error,
  value,
  set,
  rows = 3,
  ...rest
}: FieldProps & {
  value: string;
  set: (value: string) => void;
  rows?: number;
  required?: boolean;
  placeholder?: string;
  disabled?: boolean;
}) {
  const id = useId();
  return (
    <Field label={label} hint={hint} error={error} id={id}>
      <textarea
        id={id}
        rows={rows}
        aria-describedby={describedBy(id, { hint, error })}
        aria-invalid={error !== undefined}
        value={value}
        autoComplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => set(currentTarget.value)}
        {...rest}
      />
    </Field>
  );
}

/** The choices of a new container's `tls`. */
export const CERTIFICATES = [
  { value: 'files', name: 'From the host’s folder' },
  { value: 'acme', name: 'Ordered automatically (ACME)' },
] as const;

export function ChoiceField<Value extends string>({
  label,
  hint,
  value,
  of,
  set,
  disabled,
}: FieldProps & {
  value: Value;
  of: readonly { readonly value: Value; readonly name: string }[];
  set: (value: Value) => void;
  disabled?: boolean;
}) {
  const id = useId();
  return (
    <Field label={label} hint={hint} id={id}>
      <select
        id={id}
        aria-describedby={hint ? `${id}-hint` : undefined}
        value={value}
        disabled={disabled}
        onChange={({ currentTarget }) => {
          const chosen = of.find((one) => one.value === currentTarget.value);
          if (chosen !== undefined) set(chosen.value);
        }}
      >
        {of.map((one) => (
          <option key={one.value} value={one.value}>
            {one.name}
          </option>
        ))}
      </select>
    </Field>
  );
}

/** A choice that the person must make: nothing need be chosen before. */
export function RadioField<Value extends string>({
  label,
  value,
  of,
  set,
}: {
  label: string;
  value: Value | '';
  of: readonly { readonly value: Value; readonly name: string; readonly hint: string }[];
  set: (value: Value) => void;
}) {
  const id = useId();
  return (
    <fieldset class="field">
      <legend>{label}</legend>
      {of.map((one) => (
        <div key={one.value} class="check">
          <input
            type="radio"
            id={`${id}-${one.value}`}
            name={id}
            required
            aria-describedby={`${id}-${one.value}-hint`}
            checked={one.value === value}
            onChange={() => set(one.value)}
          />
          <div>
            <label for={`${id}-${one.value}`}>{one.name}</label>
            <div class="dim small" id={`${id}-${one.value}-hint`}>
              {one.hint}
            </div>
          </div>
        </div>
      ))}
    </fieldset>
  );
}

export function CheckField({
  label,
  hint,
  value,
  set,
  disabled,
}: FieldProps & { value: boolean; set: (value: boolean) => void; disabled?: boolean }) {
  const id = useId();
  return (
    <div class="check">
      <input
        type="checkbox"
        id={id}
        aria-describedby={hint ? `${id}-hint` : undefined}
        checked={value}
        disabled={disabled}
        onChange={({ currentTarget }) => set(currentTarget.checked)}
      />
      <div>
        <label for={id}>{label}</label>
        {hint && (
          <div class="dim small" id={`${id}-hint`}>
            {hint}
          </div>
        )}
      </div>
    </div>
  );
}
