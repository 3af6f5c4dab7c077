import { useRef } from 'preact/hooks';

/** A button that asks for files. The same ones can be chosen again, after they were corrected. */
export function FileButton({
  name,
  label,
  accept,
  multiple = false,
  read,
}: {
  /** What the button says. */
  name: string;
  /** What kind of file it asks for. */
  label: string;
  accept: string;
  multiple?: boolean;
  read: (files: readonly File[]) => Promise<void>;
}) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" onClick={() => input.current?.click()}>
        {name}
      </button>
      <input
        ref={input}
        type="file"
        multiple={multiple}
        class="hidden"
        accept={accept}
        aria-label={label}
        tabIndex={-1}
        onChange={({ currentTarget }) => {
          const files = [...(currentTarget.files ?? [])];
          currentTarget.value = '';
          if (files.length > 0) void read(files);
        }}
      />
    </>
  );
}
