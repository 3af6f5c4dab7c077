import { useEffect } from 'preact/hooks';
import { type Logins, loginUrl } from '../data/session.ts';

/** The page for a person who isn’t logged in: one button for each account that is offered, or one if none is. */
export function LoginPage({ logins }: { logins: Logins }) {
  useEffect(() => {
    document.title = 'Log in · Tagyard';
  }, []);
  // The login is opened from this page, because the API accepts a chosen account only from its own pages.
  const logIn = (hint?: string) => {
    location.assign(loginUrl(location.pathname + location.search + location.hash, hint));
  };
  return (
    <main class="login">
      <h1>
        <Mark /> Tagyard
      </h1>
      {!logins.isPossible ? (
        <p>
          This installation has no identity provider, so people can’t log in. Set <code>OIDC_CLIENT_ID</code>{' '}
          and the related settings, or call the API with a token.
        </p>
      ) : logins.accounts.length === 0 ? (
        <>
          <p>See your containers, their traffic and their history.</p>
          <button type="button" class="primary wide" onClick={() => logIn()}>
            Log in
          </button>
        </>
      ) : (
        <>
          <p>This instance offers these accounts. They need no password.</p>
          <ul class="accounts">
            {logins.accounts.map(({ hint, name, description }, index) => (
              <li key={hint}>
                <button
                  type="button"
                  class={`wide ${index === 0 ? 'primary' : ''}`}
                  onClick={() => logIn(hint)}
                >
                  <span class="strong">{name}</span>
                  <span class="small">{description}</span>
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
    </main>
  );
}

export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
      <rect width="32" height="32" rx="7" class="mark-ground" />
      <path d="M8 9h16v4h-6v11h-4V13H8z" fill="#fff" />
      <circle cx="24" cy="23" r="3" fill="#93c5fd" />
    </svg>
  );
}
