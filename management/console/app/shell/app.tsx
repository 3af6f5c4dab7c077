import { useEffect } from 'preact/hooks';
import { ErrorBoundary, LocationProvider, lazy, Route, Router } from 'preact-iso';
import { followEvents } from '../data/events.ts';
import { currentSession, readSession } from '../data/session.ts';
import { Page } from '../parts/page.tsx';
import { Skeleton } from '../parts/states.tsx';
import { ContainersScreen } from '../screens/containers/containers.tsx';
import { Overview } from '../screens/overview/overview.tsx';
import { followKeys } from './keys.ts';
import { LoginPage } from './login.tsx';
import { Palette } from './palette.tsx';
import { Returned, SessionOver } from './session-over.tsx';
import { Shell } from './shell.tsx';

const ContainerScreen = lazy(() => import('../screens/container/container.tsx'));

/** The whole console: the login page, or the screens. */
export function App() {
  const { value } = currentSession;
  if (value.kind === 'unknown') return <Skeleton label="Loading the console" />;
  if (value.kind === 'none') return <LoginPage logins={value.logins} />;
  if (value.kind === 'failed') {
    return (
      <main class="login">
        <h1>The console can’t start</h1>
        <p>{value.detail}</p>
        <button type="button" onClick={() => void readSession()}>
          Try again
        </button>
      </main>
    );
  }
  return (
    <LocationProvider scope="/console">
      <Screens />
    </LocationProvider>
  );
}

function Screens() {
  useEffect(followEvents, []);
  useEffect(followKeys, []);
  return (
    <Shell>
      <ErrorBoundary>
        <Router>
          <Route path="/console" component={Overview} />
          <Route path="/console/logged-in" component={Returned} />
          <Route path="/console/containers" component={ContainersScreen} />
          <Route path="/console/containers/:id" component={ContainerScreen} />
          <Route default component={Missing} />
        </Router>
      </ErrorBoundary>
      <Palette />
      <SessionOver />
    </Shell>
  );
}

function Missing() {
  return (
    <Page title="There is nothing here">
      <p>
        The address may be mistyped. <a href="/console">Go to the overview</a>
      </p>
    </Page>
  );
}
