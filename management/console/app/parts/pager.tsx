/** The way to the neighbouring pages of a list. */
export function Pager({
  isFirst,
  hasNext,
  next,
  back,
}: {
  isFirst: boolean;
  hasNext: boolean;
  next: () => void;
  back: () => void;
}) {
  if (isFirst && !hasNext) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <button type="button" disabled={isFirst} onClick={back}>
        Previous page
      </button>
      <button type="button" disabled={!hasNext} onClick={next}>
        Next page
      </button>
    </nav>
  );
}
