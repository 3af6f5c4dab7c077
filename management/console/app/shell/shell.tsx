import type { ComponentChildren } from 'preact';
import { useLocation } from 'preact-iso';
import { isLive } from '../data/events.ts';
import { me } from '../data/session.ts';
import { logOut } from './log-out.ts';
import { Mark } from './login.tsx';
import { isPaletteOpen } from './palette-state.ts';
import { nextTheme, theme } from './theme.ts';

interface Place {
  readonly path: string;
  readonly name: string;
  /** Only operators can read it. */
  readonly isOperators?: boolean;
}

/** The screens in the order of the navigation. */
const PLACES: readonly Place[] = [
  { path: '/console', name: 'Overview' },
  { path: '/console/containers', name: 'Containers' },
  { path: '/console/requests', name: 'Requests' },
  { path: '/console/usage', name: 'Usage' },
  { path: '/console/changes', name: 'Changes' },
  { path: '/console/plans', name: 'Plans', isOperators: true },
  { path: '/console/drift', name: 'Drift', isOperators: true },
  { path: '/console/hosts', name: 'Hosts', isOperators: true },
  { path: '/console/rollouts', name: 'Rollouts', isOperators: true },
  { path: '/console/clients', name: 'Clients' },
  { path: '/console/organisations', name: 'Organisations' },
  { path: '/console/tokens', name: 'Tokens' },
  { path: '/console/webhooks', name: 'Webhooks' },
  { path: '/console/audit', name: 'Audit' },
];

/** This many screens fit beside the rest of the bar; if there are more, they get a row of their own. */
const MOST_IN_ROW = 9;

export function visiblePlaces(): readonly Place[] {
  return PLACES.filter(({ isOperators }) => !isOperators || me().isOperator);
}

/** The frame of all screens. */
export function Shell({ children }: { children: ComponentChildren }) {
  const { path } = useLocation();
  const isHere = (place: string) =>
    place === '/console' ? path === place : path === place || path.startsWith(`${place}/`);
  const { name, subject } = me();
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class={visiblePlaces().length > MOST_IN_ROW ? 'bar many' : 'bar'}>
        <a class="brand" href="/console" aria-label="Tagyard: overview">
          <Mark /> <span>Tagyard</span>
        </a>
        <nav aria-label="Screens">
          {visiblePlaces().map((place) => (
            <a key={place.path} href={place.path} aria-current={isHere(place.path) ? 'page' : undefined}>
              {place.name}
            </a>
          ))}
        </nav>
        <div class="bar-end">
          <button
            type="button"
            class="find"
            onClick={() => {
              isPaletteOpen.value = true;
            }}
          >
            Find <kbd>⌘K</kbd>
          </button>
          <button type="button" class="quiet" onClick={nextTheme}>
            Theme: {theme.value === 'system' ? 'auto' : theme.value}
          </button>
          <span class={`live ${isLive.value ? 'on' : ''}`} role="status">
            {isLive.value ? 'Live' : 'Connecting'}
          </span>
          <span class="who" title={subject}>
            {name || subject}
          </span>
          <button type="button" class="quiet" onClick={() => void logOut()}>
            Log out
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}
