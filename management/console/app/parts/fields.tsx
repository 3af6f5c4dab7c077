import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

interface FieldProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
}

/** A labelled control with its explanation. */
function Field({ label, hint, id, children }: FieldProps & { id: string; children: ComponentChildren }) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {hint && (
        <span class="dim small" id={`${id}-hint`}>
          {hint}
        </span>
      )}
      {children}
    </div>
  );
}

export function TextField({
  label,
  hint,
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
    <Field label={label} hint={hint} id={id}>
      <input
        id={id}
        type={type as 'text'}
        aria-describedby={hint ? `${id}-hint` : undefined}
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
    <Field label={label} hint={hint} id={id}>
      <textarea
        id={id}
        rows={rows}
        aria-describedby={hint ? `${id}-hint` : undefined}
        value={value}
        autoComplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => set(currentTarget.value)}
        {...rest}
      />
    </Field>
  );
}

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
