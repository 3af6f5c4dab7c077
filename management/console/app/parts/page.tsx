import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

/** A screen: its title in the window and as the heading, and its actions beside it. */
export function Page({
  title,
  sub,
  actions,
  children,
}: {
  title: string;
  sub?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${title} · Tagyard`;
  }, [title]);
  return (
    <>
      <header class="page-head">
        <div>
          <h1>{title}</h1>
          {sub && <div class="sub">{sub}</div>}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

/** A part of a screen with a heading of its own, which links can name. */
export function Section({
  id,
  title,
  aside,
  children,
}: {
  id: string;
  title: string;
  aside?: ComponentChildren;
  children: ComponentChildren;
}) {
  const section = useRef<HTMLElement>(null);
  useEffect(() => {
    // Browsers scroll only to what is there when the address changes.
    if (location.hash === `#${id}`) section.current?.scrollIntoView();
  }, [id]);
  return (
    <section ref={section} class="card" aria-labelledby={`${id}-title`} id={id}>
      <header class="card-head">
        <h2 id={`${id}-title`}>{title}</h2>
        {aside && <div class="aside">{aside}</div>}
      </header>
      {children}
    </section>
  );
}
