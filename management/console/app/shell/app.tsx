import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { ErrorBoundary, LocationProvider, lazy, Route, Router } from 'preact-iso';
import { followEvents } from '../data/events.ts';
import { currentSession, readSession } from '../data/session.ts';
import { Page } from '../parts/page.tsx';
import { Skeleton } from '../parts/states.tsx';
import { ContainersScreen } from '../screens/containers/containers.tsx';
import { Overview } from '../screens/overview/overview.tsx';
import { KeyList } from './key-list.tsx';
import { followKeys } from './keys.ts';
import { LoginPage } from './login.tsx';
import { Palette } from './palette.tsx';
import { Returned, SessionOver } from './session-over.tsx';
import { Shell } from './shell.tsx';

/**
 * A screen whose code is loaded when the screen is first shown. After an update of the console, that code can be gone.
 */
function screen(load: () => Promise<{ default: ComponentType }>) {
  return lazy(() => load().catch(() => ({ default: Unloadable })));
}

const ChangesScreen = screen(() => import('../screens/instance/changes.tsx'));
const PlansScreen = screen(() => import('../screens/instance/plans.tsx'));
const DriftScreen = screen(() => import('../screens/instance/drift.tsx'));
const HostsScreen = screen(() => import('../screens/instance/hosts.tsx'));
const ClientsScreen = screen(() => import('../screens/tenants/clients.tsx'));
const ClientScreen = screen(() => import('../screens/tenants/client.tsx'));
const OrganisationsScreen = screen(() => import('../screens/tenants/organisations.tsx'));
const OrganisationScreen = screen(() => import('../screens/tenants/organisation.tsx'));
const TokensScreen = screen(() => import('../screens/tenants/tokens.tsx'));
const WebhooksScreen = screen(() => import('../screens/tenants/webhooks.tsx'));
const AuditScreen = screen(() => import('../screens/tenants/audit.tsx'));
const CreateScreen = screen(() => import('../screens/create/create.tsx'));
const SetupScreen = screen(() => import('../screens/create/setup.tsx'));
const RequestsScreen = screen(() => import('../screens/requests/requests.tsx'));
const OutputScreen = screen(() => import('../screens/requests/output.tsx'));
const UsageScreen = screen(() => import('../screens/usage/usage.tsx'));
const RolloutsScreen = screen(() => import('../screens/rollouts/rollouts.tsx'));
const RolloutScreen = screen(() => import('../screens/rollouts/rollout.tsx'));
const NewRolloutScreen = screen(() => import('../screens/rollouts/new-rollout.tsx'));
const ContainerScreen = screen(() => import('../screens/container/container.tsx'));

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
          <Route path="/console/containers/new" component={CreateScreen} />
          <Route path="/console/containers/:id/setup" component={SetupScreen} />
          <Route path="/console/containers/:id/requests" component={RequestsScreen} />
          <Route path="/console/containers/:id/output" component={OutputScreen} />
          <Route path="/console/requests" component={RequestsScreen} />
          <Route path="/console/containers/:id" component={ContainerScreen} />
          <Route path="/console/containers/:id/:tab" component={ContainerScreen} />
          <Route path="/console/usage" component={UsageScreen} />
          <Route path="/console/changes" component={ChangesScreen} />
          <Route path="/console/plans" component={PlansScreen} />
          <Route path="/console/drift" component={DriftScreen} />
          <Route path="/console/hosts" component={HostsScreen} />
          <Route path="/console/rollouts" component={RolloutsScreen} />
          <Route path="/console/rollouts/new" component={NewRolloutScreen} />
          <Route path="/console/rollouts/:id" component={RolloutScreen} />
          <Route path="/console/clients" component={ClientsScreen} />
          <Route path="/console/clients/:id" component={ClientScreen} />
          <Route path="/console/organisations" component={OrganisationsScreen} />
          <Route path="/console/organisations/:id" component={OrganisationScreen} />
          <Route path="/console/tokens" component={TokensScreen} />
          <Route path="/console/webhooks" component={WebhooksScreen} />
          <Route path="/console/audit" component={AuditScreen} />
          <Route default component={Missing} />
        </Router>
      </ErrorBoundary>
      <Palette />
      <KeyList />
      <SessionOver />
    </Shell>
  );
}

function Unloadable() {
  return (
    <Page title="This screen can’t be loaded">
      <p>The API can’t be reached, or the console was updated since you opened it.</p>
      <button type="button" onClick={() => location.reload()}>
        Load the console again
      </button>
    </Page>
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
