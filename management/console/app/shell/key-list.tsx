import { Dialog } from '../parts/dialog.tsx';
import { isKeyListOpen } from './palette-state.ts';

const KEYS = [
  ['Ctrl+K', 'or ⌘K: find a container or a screen'],
  ['/', 'search in the list'],
  ['Esc', 'leave the search, or close a dialog'],
  ['j', 'next row'],
  ['k', 'previous row'],
  ['x', 'choose the row'],
  ['?', 'this list'],
] as const;

/** What the keys do. */
export function KeyList() {
  if (!isKeyListOpen.value) return null;
  const close = () => {
    isKeyListOpen.value = false;
  };
  return (
    <Dialog title="Keys" close={close}>
      <dl class="facts">
        {KEYS.map(([key, does]) => (
          <>
            <dt key={key}>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </>
        ))}
      </dl>
      <div class="actions">
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
