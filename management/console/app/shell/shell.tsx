import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { isLive } from '../data/events.ts';
import { me } from '../data/session.ts';
import { shownClient } from '../data/shown-client.ts';
import { logOut } from './log-out.ts';
import { Mark } from './login.tsx';
import { isPaletteOpen } from './palette-state.ts';
import { Icon, visibleGroups } from './places.tsx';
import { nextTheme, theme } from './theme.ts';

const FIND = 'M7 2a5 5 0 1 1 0 10A5 5 0 0 1 7 2M11 11l3.5 3.5';
const THEME = 'M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12';
const LOG_OUT = 'M6 2H2v12h4M10 4.5 13.5 8 10 11.5M6 8h7';

/** The frame of all screens: the navigation at the side (in a drawer on phones), and the screen. */
export function Shell({ children }: { children: ComponentChildren }) {
  const { path, url } = useLocation();
  const [isOpen, open] = useState(false);
  useEffect(() => open(false), [url]);
  useEffect(() => {
    if (!isOpen) return;
    const onKeyDown = ({ key }: KeyboardEvent) => key === 'Escape' && open(false);
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, [isOpen]);
  const isHere = (place: string) =>
    place === '/console' ? path === place : path === place || path.startsWith(`${place}/`);
  const { name, subject } = me();
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top">
        <Brand />
        <button type="button" aria-expanded={isOpen} aria-controls="side" onClick={() => open(!isOpen)}>
          {isOpen ? 'Close' : 'Menu'}
        </button>
      </header>
      <aside class={isOpen ? 'side open' : 'side'} id="side" aria-label="Navigation">
        <Brand />
        <ClientChoice />
        <button
          type="button"
          class="find"
          onClick={() => {
            open(false);
            isPaletteOpen.value = true;
          }}
        >
          <Icon path={FIND} /> <span class="name">Find</span> <kbd>⌘K</kbd>
        </button>
        <nav aria-label="Screens">
          {visibleGroups().map((group) => (
            <>
              <h2 key={group.name}>
                <span>{group.name}</span>
              </h2>
              {group.places.map((place) => (
                <a
                  key={place.path}
                  href={place.path}
                  title={place.name}
                  aria-current={isHere(place.path) ? 'page' : undefined}
                >
                  <Icon path={place.icon} /> <span class="name">{place.name}</span>
                </a>
              ))}
            </>
          ))}
        </nav>
        <div class="side-end">
          <span class={`live ${isLive.value ? 'on' : ''}`} role="status">
            {isLive.value ? 'Live' : 'Connecting'}
          </span>
          <span class="who" title={subject}>
            {name || subject}
          </span>
          <button type="button" class="quiet" title="Theme" onClick={nextTheme}>
            <Icon path={THEME} />
            <span class="name">Theme: {theme.value === 'system' ? 'auto' : theme.value}</span>
          </button>
          <button type="button" class="quiet" title="Log out" onClick={() => void logOut()}>
            <Icon path={LOG_OUT} /> <span class="name">Log out</span>
          </button>
        </div>
      </aside>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}

function Brand() {
  return (
    <a class="brand" href="/console" aria-label="Tagyard: overview">
      <Mark /> <span class="name">Tagyard</span>
    </a>
  );
}

/** Screens whose address names the client that they show. */
const WITH_CLIENT = ['/console/containers', '/console/usage'];

/** Whose containers the overview, the list and the usage show. */
function ClientChoice() {
  const { path, query, route } = useLocation();
  const { clients } = me();
  if (clients.length < 2) return null;
  return (
    <select
      aria-label="Client"
      value={query.client ?? shownClient.value}
      onChange={({ currentTarget: { value } }) => {
        shownClient.value = value;
        if (!WITH_CLIENT.includes(path)) return;
        const { client: _old, cursor: _page, ...rest } = query;
        route(`${path}?${new URLSearchParams(value === '' ? rest : { ...rest, client: value })}`);
      }}
    >
      <option value="">All clients</option>
      {clients.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
  );
}
